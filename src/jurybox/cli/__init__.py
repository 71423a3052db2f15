"""The command line: one file a command, each loaded when it is called."""

import sys

from jurybox import __version__


def main() -> None:
    """Run the command ``jurybox`` and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        # The one call that scripts make just to look; it need not load a command-line library.
        from jurybox.cli.exits import guarded

        sys.exit(guarded(_print_version))
    from jurybox.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _print_version() -> int:
    sys.stdout.write(f"jurybox {__version__}\n")
    return 0
