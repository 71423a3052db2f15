"""Runs to report on."""

from stored_runs import make_run, row, store

__all__ = ["make_run", "row", "store"]
