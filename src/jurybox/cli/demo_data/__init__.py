"""The data of ``jurybox demo``: a suite of answers, a pair to compare, replies scored by rules."""
