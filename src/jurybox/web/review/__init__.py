"""The queue in which reviewers score a run's samples."""
