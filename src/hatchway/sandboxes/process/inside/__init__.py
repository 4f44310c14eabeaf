"""What runs in the spawner's process; the host imports `tree` only. Standard library of Python 3.9, nothing else."""
