"""What people and tracing systems see of a run."""
