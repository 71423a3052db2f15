"""Renders a run as a page: plain data, then panels and charts that need no scripts."""
