"""The demo: a scripted model, and everything else real."""
