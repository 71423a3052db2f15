"""The engine: it drives flows against models, within limits."""
