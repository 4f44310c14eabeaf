"""`python -m hatchway` is the `hatchway` command."""

from hatchway.cli.main import main

main()
