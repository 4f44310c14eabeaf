"""Did it: the durable record of runs and calls."""
