"""Automated scoring: the rules of a rubric document, executed."""
