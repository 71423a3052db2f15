"""Models in order of strength, from verdicts on pairs of their answers."""
