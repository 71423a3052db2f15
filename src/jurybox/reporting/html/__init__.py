"""Renders a run as a page: first as plain data, then as panels and charts without scripts."""
