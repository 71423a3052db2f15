"""HTTP/1.1 as a client speaks it, on asyncio's protocols; it knows nothing of models."""
