"""Agreement, intervals, comparisons, rankings, corrections and biases of judges.

All functions are pure: their only source of randomness is a seed argument.
"""
