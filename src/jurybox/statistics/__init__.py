"""What a judge's figures are worth: agreement, intervals, comparisons, rankings, corrections.

Every result is a frozen value that carries what it was computed from, how many items that were,
and, where one can be given, its interval. Everything here is a pure function of its arguments:
chance enters only by a seed.
"""
