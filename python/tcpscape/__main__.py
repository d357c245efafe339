"""`python -m tcpscape`."""

from tcpscape.cli import main

main()
