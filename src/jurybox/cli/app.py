"""The command ``jurybox`` itself: its commands, its errors, its exit codes."""

import traceback
from collections.abc import Sequence

import click

from jurybox import __version__
from jurybox.cli.exits import BAD_INPUT, FINE, INCOMPLETE, fail, guarded
from jurybox.cli.lazy import LazyGroup
from jurybox.cli.output import harmless
from jurybox.errors import IncompleteError, InputError
from jurybox.settings import TRACEBACK
from jurybox.wiring import read_settings


@click.group(
    cls=LazyGroup,
    lazy={
        "init": ("jurybox.cli.init", "Write a small suite that runs at once."),
        "run": ("jurybox.cli.run", "Run a suite, and print its figures, gates and decision."),
        "resume": ("jurybox.cli.resume", "Go on with a run that was stopped."),
        "runs": ("jurybox.cli.runs", "List the runs of the store."),
        "show": ("jurybox.cli.show", "Show a run, or one of its samples."),
        "gate": ("jurybox.cli.gate", "Hold a run against the gates of its rubric."),
        "verify": ("jurybox.cli.verify", "Derive a run anew from its stored replies."),
        "rescore": ("jurybox.cli.rescore", "Read a run's replies again under another rubric."),
        "report": ("jurybox.cli.report", "Write a report of a run to a file."),
        "serve": ("jurybox.cli.serve", "Show the runs of the store in a browser."),
        "export": ("jurybox.cli.export", "Write the samples of a run to a file."),
        "agree": ("jurybox.cli.agree", "Tell how far raters agree."),
        "diff": ("jurybox.cli.diff", "Compare two runs."),
        "rank": ("jurybox.cli.rank", "Rank models by verdicts on pairs of their answers."),
        "estimate": ("jurybox.cli.estimate", "Correct a run's figures by people's labels."),
        "bias": ("jurybox.cli.bias", "Tell what moves a run's judges beside quality."),
        "calibrate": (
            "jurybox.cli.calibrate",
            "Hold a judge against people, and its rubric too.",
        ),
        "evaluate": ("jurybox.cli.evaluate", "Judge one response, or compare two."),
        "rubric": ("jurybox.cli.rubric", "List, show, check and start rubric documents."),
        "model": ("jurybox.cli.model", "Pull, list and remove embedded models."),
        "demo": ("jurybox.cli.demo", "Show jurybox at work, without a key."),
        "doctor": ("jurybox.cli.doctor", "Tell what is installed, set and within reach."),
    },
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
    """Run one command and return its exit code; whatever goes wrong is one line on stderr."""
    return guarded(lambda: _run(arguments))


def _run(arguments: Sequence[str]) -> int:  # noqa: C901, PLR0911 - one exit a kind of trouble
    try:
        # Not `app.main`: it ends with code 1 when a reader goes away, and 1 means a failed gate.
        with app.make_context("jurybox", list(arguments)) as context:
            code = app.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.UsageError as error:
        path = "jurybox" if error.ctx is None else error.ctx.command_path
        message = f"{path}: {_sentence(error.format_message())} (see `{path} --help`)"
        return fail(harmless(message), BAD_INPUT)
    except click.ClickException as error:
        return fail(harmless(_sentence(error.format_message())), BAD_INPUT)
    except InputError as error:
        return fail(harmless(str(error)), BAD_INPUT)
    except IncompleteError as error:
        return fail(harmless(str(error)), INCOMPLETE)
    except SystemExit:
        # The library that draws tables leaves this way when its reader has gone.
        return INCOMPLETE
    except (click.Abort, KeyboardInterrupt):
        return fail("jurybox: interrupted", INCOMPLETE)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - no user ever sees a traceback
        if read_settings().traceback:
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        line = f"jurybox: a fault of ours, {harmless(what)} ({TRACEBACK}=1 shows where)"
        return fail(line, INCOMPLETE)
    return code if isinstance(code, int) else FINE


def _sentence(message: str) -> str:
    """Bring a message of click's into one line of our style."""
    flat = " ".join(message.split()).rstrip(".")
    return flat[:1].lower() + flat[1:]
