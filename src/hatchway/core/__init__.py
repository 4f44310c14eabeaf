"""The words and the contracts; it imports nothing of ours."""
