"""The command line: one file per command, each loaded when it is called."""

import sys

from jurybox import __version__


def main() -> None:
    """Run the command ``jurybox`` and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        # Answered without loading a command-line library, since scripts call it often.
        from jurybox.cli.signals import guarded

        sys.exit(guarded(_print_version))
    from jurybox.cli.app import run

    sys.exit(run(sys.argv[1:]))


def _print_version() -> int:
    sys.stdout.write(f"jurybox {__version__}\n")
    return 0
