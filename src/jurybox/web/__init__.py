"""The HTTP server for the pages and the API of stored runs."""
