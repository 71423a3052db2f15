"""From scores and measures to verdicts."""
