"""Walls a process builds around itself: Landlock for files, seccomp for system calls. Standard library only."""
