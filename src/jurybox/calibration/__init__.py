"""Judges held against people: what people said, and how a judge's instructions get better by it."""
