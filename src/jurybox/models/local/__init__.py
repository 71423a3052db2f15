"""Embedded models: files on this machine that a runtime in this process reads."""
