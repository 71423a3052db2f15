"""The engine: drives flows against models, within limits."""
