"""Runs for people and other programs: one view, many forms.

Whatever reads a run raises `IncompleteError` where something stored is missing or can't be read.
"""
