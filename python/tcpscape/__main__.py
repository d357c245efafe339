"""`python -m tcpscape`, and the command `tcpscape`."""

import os
import sys


def main() -> None:
    """Runs the command line; an interrupt before it is loaded is one line, too."""
    try:
        from tcpscape.cli import overview, process

        if overview.is_asked(sys.argv[1:]):
            process.run(overview.answer)
        from tcpscape.cli.main import main as run
    except KeyboardInterrupt:
        os.write(2, b"interrupted; nothing ran\n")
        os._exit(130)
    run()


if __name__ == "__main__":
    main()
