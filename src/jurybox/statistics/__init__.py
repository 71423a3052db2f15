"""Agreement, intervals, comparisons, rankings, corrections and biases of judges.

Pure functions of their arguments: randomness enters only by a seed.
"""
