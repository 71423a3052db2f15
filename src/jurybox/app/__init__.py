"""The use cases: what commands, pages and the Python API do, each in one place."""
