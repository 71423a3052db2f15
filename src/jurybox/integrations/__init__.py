"""Adapters for other systems. Only `app` imports them."""
