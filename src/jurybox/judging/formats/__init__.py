"""From the text of a reply to a verdict, or to a defect that says what to fix.

A reply that mentions a verdict has not given it, and two that differ are none. No reader ever
returns a score that is not literally in the reply.
"""
