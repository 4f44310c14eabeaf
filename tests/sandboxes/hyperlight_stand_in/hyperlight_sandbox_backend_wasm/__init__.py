"""The stand-in needs no backend."""
