"""Judging with a small model, which finds evidence that code turns into a score.

A small model scores badly even if it writes a rationale first, but it answers narrow questions
well. So each criterion becomes yes-or-no questions, the answers are read from the probabilities of
the model's next token, and code turns them into a score. The findings are the reasoning; they are
recorded before any score exists.
"""
