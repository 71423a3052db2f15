"""Reads YAML, numbers and texts written by people, and locates every fault."""
