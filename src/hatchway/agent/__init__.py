"""The agent: acts by code, asks before it acts, can be resumed."""
