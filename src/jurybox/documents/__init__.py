"""Reads what people write (YAML, numbers, texts) and locates every fault."""
