"""`python -m tcpscape`."""

from tcpscape.cli.main import main

main()
