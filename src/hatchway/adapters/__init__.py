"""Adapters: the runtime inside other frameworks. Each one needs its own extra and is imported by its own name."""
