"""How far raters agree: people with each other, a judge with people.

- ``pair``: two raters on the items that both rated, with every figure and its interval.
- ``panel``: all raters of a criterion together.
- ``cells``, ``draws``: the ratings as counts, and how they are drawn anew.
- ``coefficients``: the figures of a pair.
- ``coincidences``: the figures of a panel.
"""
