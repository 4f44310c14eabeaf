"""The stand-in needs no guest."""
