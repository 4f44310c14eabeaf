"""Anthropic: the Messages API with its code execution tool."""
