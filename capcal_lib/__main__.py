"""The command, and ``python -m capcal_lib``; a Ctrl-C while it loads is one line, too."""

import sys


def main() -> None:
    """Load the command and run it."""
    try:
        from capcal_lib.cli import main as run

        run()
    except KeyboardInterrupt:
        print("capcal: stopped before it began", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
