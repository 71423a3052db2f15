"""Reviews: human verdicts on queued samples, and which samples reviewers see."""
