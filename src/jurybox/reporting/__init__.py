"""Runs for people and other programs: one view, many forms."""
