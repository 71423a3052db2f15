"""Turns scores and measures into verdicts."""
