"""The data of ``jurybox demo``: answers to score, pairs to compare, replies for rules."""
