"""What ``jurybox demo`` judges: answers to score, pairs to compare, replies for rules."""
