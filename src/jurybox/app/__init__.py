"""The use cases behind commands, pages and the Python API."""
