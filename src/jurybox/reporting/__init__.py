"""Presents runs to people and programs: one view, many formats.

Functions that read a run raise `IncompleteError` if stored data is missing or unreadable.
"""
