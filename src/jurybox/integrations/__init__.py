"""Adapters for other systems; the engine knows none of them."""
