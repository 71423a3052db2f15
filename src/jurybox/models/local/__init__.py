"""Embedded models: files on this machine, loaded into this process."""
