"""Converts Markdown rubric documents to frozen ``Rubric`` values, and back.

Faults don't stop the reader, so that the author sees all findings at once.
"""
