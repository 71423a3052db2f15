"""Renders a run as a page: plain data, then charts and panels, without scripts."""
