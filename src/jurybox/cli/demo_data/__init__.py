"""Data for ``jurybox demo``: a suite of answers, a pair to compare, and replies for rules."""
