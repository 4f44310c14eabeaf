"""Where code runs: one backend per file or folder."""
