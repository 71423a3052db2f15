"""From the Markdown of a rubric document to a frozen ``Rubric``, and back.

A document is read to the end whatever is wrong with it: its author sees all findings at once.
"""
