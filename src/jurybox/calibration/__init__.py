"""Calibration: compare judges with people's labels, tune rubrics, and measure biases."""
