"""`python -m streams` is the `streams` command."""

from streams.cli import main

main()
