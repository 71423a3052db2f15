"""The engine: sends the requests of flows to models, within limits."""
