"""What runs inside the container: standard library of Python 3.9 and nothing else."""
