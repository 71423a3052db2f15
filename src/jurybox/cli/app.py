"""The command ``jurybox``: its table of commands, its errors and its exit codes."""

import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from jurybox import __version__
from jurybox.cli.options import CommandGroup
from jurybox.cli.output import harmless
from jurybox.cli.signals import BAD_INPUT, FINE, INCOMPLETE, fail, guarded
from jurybox.errors import IncompleteError, JuryboxError
from jurybox.settings import TRACEBACK
from jurybox.text_format import closest
from jurybox.wiring import setting

# NAME is the `command` of the module `jurybox.cli.NAME`; the order is that of the help. The module
# of `check-reply` is `check_reply`; that of `import`, a keyword of Python, is `import_files`.
_COMMANDS: Final = {
    "init": "Write a small suite, ready to run.",
    "import": "Convert another tool's file to a suite, a dataset and recorded judgments.",
    "run": "Run a suite, and print its metrics, gates and decision.",
    "resume": "Continue a run that was stopped.",
    "runs": "List the runs in the store.",
    "show": "Show a run, or one of its samples.",
    "gate": "Check a run against its rubric's gates.",
    "verify": "Derive a run again from its stored replies.",
    "rescore": "Score a run's stored replies under another rubric.",
    "report": "Write a report of a run to a file.",
    "serve": "Show the runs in the store in a browser.",
    "export": "Write the samples of a run to a file.",
    "agree": "Measure how well raters agree.",
    "diff": "Compare two runs.",
    "rank": "Rank models by verdicts on pairs of their answers.",
    "estimate": "Correct a run's metrics using human labels.",
    "bias": "Measure judge biases: position, length, self-preference, formatting.",
    "calibrate": "Compare a judge with human labels, and tune its rubric.",
    "evaluate": "Judge one response, or compare two.",
    "prompt": "Print a judge's prompt, so that an agent can be the judge.",
    "check-reply": "Check an agent's replies, and print the report.",
    "mcp": "Serve jurybox to agents through the Model Context Protocol.",
    "rubric": "List, show, check and start rubric documents.",
    "langfuse": "Deliver runs to Langfuse, and read people's scores back.",
    "model": "Pull, list and remove embedded models.",
    "demo": "Show what jurybox does, without a key.",
    "doctor": "Check what is installed, configured and reachable.",
}


class LazyGroup(CommandGroup):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = "import_files" if cmd_name == "import" else cmd_name.replace("-", "_")
        return import_module(f"jurybox.cli.{module}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", message="jurybox %(version)s")
def app() -> None:
    """Judge the output of language models against a rubric that people can read.

    \b
    Examples:
      jurybox init && jurybox run suite.yaml
      jurybox show last
      jurybox gate last
      jurybox evaluate --rubric general --task "2 + 2?" --response "4" --judge python/my:judge
      jurybox rubric list
      jurybox rubric new support-answers

    Exit codes: 0 fine, 1 a gate or pass rule failed, 2 bad usage or bad input, 3 the work could not
    be completed.
    """  # noqa: D301 - click reads \b as "keep these lines"


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors are printed on standard error."""
    return guarded(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:
    try:
        # Not `app.main`: it exits with code 1 if the output's reader is gone, and 1 means a failed
        # gate.
        with app.make_context("jurybox", list(arguments)) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (click.ClickException, JuryboxError) as error:
        code = INCOMPLETE if isinstance(error, IncompleteError) else BAD_INPUT
        return fail(harmless(_message(error)), code)
    except SystemExit:
        # The library that draws tables exits this way if the output's reader is gone.
        return INCOMPLETE
    except (click.Abort, KeyboardInterrupt):
        return fail("jurybox: interrupted", INCOMPLETE)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - no user ever sees a traceback
        if setting(TRACEBACK) not in {None, "0"}:
            traceback.print_exc()
        what = harmless(f"{type(error).__name__}: {error}")
        line = f"jurybox: internal error, {what} ({TRACEBACK}=1 shows the traceback)"
        return fail(line, INCOMPLETE)
    return code if isinstance(code, int) else FINE


def _message(error: click.ClickException | JuryboxError) -> str:
    """Return the message of an error; click's errors become one line in our style."""
    if isinstance(error, JuryboxError):
        return str(error)
    flat = " ".join(error.format_message().split()).rstrip(".")
    line = flat[:1].lower() + flat[1:]
    if not isinstance(error, click.UsageError):
        return line
    path = "jurybox" if error.ctx is None else error.ctx.command_path
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        options = (name for each in error.ctx.command.params for name in each.opts)
        names = {name.lstrip("-"): name for name in options}
        close = closest(error.option_name.lstrip("-"), names)
        line = f"no such option '{error.option_name}'"
        line += "" if close is None else f"; did you mean `{names[close]}`?"
    return f"{path}: {line} (see `{path} --help`)"
