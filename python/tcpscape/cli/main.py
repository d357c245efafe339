"""The entry point of the command line: runs one command; what the user can mend is one line on stderr."""

from __future__ import annotations

import atexit
import os
import sys

from tcpscape.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, INTERRUPTED, TcpscapeError


def main() -> None:
    """Runs the command line. What the user can mend is one line on stderr and status 2, never a traceback."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    status = call(sys.argv[1:])
    if status == EXIT_INTERRUPTED:  # at once: threads inside a trial would be waited for until it is over
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def call(args: list[str]) -> int:
    """Runs one command line and returns its status."""
    try:
        from typer.main import get_command

        from tcpscape.cli.app import app

        got = get_command(app).main(args=args, prog_name="tcpscape", standalone_mode=False, obj=tuple(args))
    except TcpscapeError as e:
        return _refuse(str(e))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.stderr.flush()
        os._exit(EXIT_INTERRUPTED)
    except Exception as e:
        if not hasattr(e, "format_message"):
            raise
        if type(e).__name__ == "NoArgsIsHelpError":  # a group of commands without one of them
            print(e.format_message(), file=sys.stderr)
            return EXIT_USER_ERROR
        return _refuse(_usage(e))
    return got if isinstance(got, int) else 0


def _usage(e: Exception) -> str:
    """A usage error of the option parser as the house's one line."""
    said = str(e.format_message()).rstrip(".").replace("\n", " ").split(" (Possible options")[0]  # type: ignore[attr-defined]
    name = type(e).__name__
    if name == "Abort":
        return "interrupted"
    param = getattr(e, "param", None)
    opts = [o for o in getattr(param, "opts", ()) if o.startswith("--")]  # an option by the name that is typed, an argument by its own
    option = getattr(e, "option_name", None) or next(iter(opts), None) or getattr(param, "name", None) or "command line"
    where = getattr(getattr(e, "ctx", None), "command_path", None) or "tcpscape"
    known = getattr(e, "possibilities", None)
    fix = f"did you mean {', '.join(known)}?" if known else f"see `{where} --help`"
    return f"{str(option).lstrip('-')}: {said[:1].lower()}{said[1:]}; {fix}"


def _refuse(message: str) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return EXIT_USER_ERROR
