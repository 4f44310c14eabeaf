"""What runs on the far side of `exec`: keeper, zygote, children. Standard library of Python 3.9 only."""
