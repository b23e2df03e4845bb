"""``python -m mtcd`` is the command line."""

from mtcd.cli.app import main

main()
