"""The agent at a terminal: prompt, approval, streamed replies, one status line."""
