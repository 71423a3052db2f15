"""Judging: prompts, replies, votes and juries, without I/O."""
