"""A run as a page: plain data first, then charts and panels made of it, by the server alone."""
