"""Judging with a small model: evidence first, the score by code.

A small model can't write a rationale and then score well, but it answers narrow questions well. So
each criterion becomes questions with yes or no for an answer, their probabilities are read from the
model's next word, and code turns them into a score. The findings are the reasoning: they are
written down before there is any score.
"""
