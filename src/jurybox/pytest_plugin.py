"""Judgments as assertions in pytest: the fixture ``jury``, its marker and its recordings.

The plugin is installed with the package. The rest of jurybox is loaded only when a test uses the
fixture.
"""

import re
from collections.abc import Generator, Sequence
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from jurybox.judging.flow import ModelRequest, Outcome
    from jurybox.models.recorded import Recorder, ReplayModel
    from jurybox.rubric import Rubric
    from jurybox.scoring.by_rules import SingleReport

_RECORD: Final = "--jury-record"
_JUDGES: Final = "jury_judges"
_FOLDER: Final = "jury_replies"
_HOW: Final = frozenset(("rubric", "judges", "votes", "base_url", "allow_version_drift"))
"""The arguments of `evaluate` that configure judging; the others are the material to judge."""
_OUTCOMES: Final = {True: "passes", False: "fails", None: "not measured"}
_COUNTS: Final = ("jury_judgments", "jury_calls", "jury_replayed", "jury_dollars")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option to record replies, and the setting for the default judges."""
    group = parser.getgroup("jury", "judgments by jurybox")
    group.addoption(
        _RECORD, action="store_true", help="ask the judges and record their replies again"
    )
    parser.addini(_JUDGES, "the default judge models of tests", type="args")


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers",
        "jury(rubric, judges, votes): the defaults for the fixture `jury`",
    )


@pytest.fixture
def jury(request: pytest.FixtureRequest) -> "Generator[JuryFixture]":
    """Judge responses by a rubric, and assert that they pass."""
    made = JuryFixture(request)
    yield made
    # Workers of pytest-xdist pass these on, and JUnit files contain them.
    request.node.user_properties += zip(_COUNTS, made.close(), strict=True)


class JuryFixture:
    """Judges the responses of one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        from jurybox.wiring import environment

        usual = request.config.getini(_JUDGES)
        self._usual: dict[str, Any] = {"judges": usual} if usual else {}
        for mark in reversed(list(request.node.iter_markers("jury"))):
            self._usual |= mark.kwargs
        name = _file_name(request.node.nodeid.partition("::")[2])
        self._file = request.path.parent / _FOLDER / request.path.stem / name
        self._record = bool(request.config.getoption(_RECORD))
        ci = environment().get("CI", "").lower() not in {"", "0", "false"}
        self._replays = ci and not self._record
        self._replies: ReplayModel | None = None
        self._recorder: Recorder | None = None
        self._dollars: list[float | None] = []
        self._judgments = self._calls = self._replayed = 0

    def assert_passes(self, **parts: Any) -> "SingleReport":  # noqa: ANN401 - those of `evaluate`
        """Assert that a response passes the rubric's rules, and return the report.

        Example:
            >>> def test_greeting(jury):
            ...     jury.assert_passes(rubric="companion", task="Hi!", response=bot("Hi!"))

        Raises:
            AssertionError: the response doesn't pass, lacks a valid vote, or awaits review.
            InputError: an argument can't be used, or the rubric has no pass rules.

        """
        __tracebackhide__ = True
        from jurybox.app.evaluate_once import conclude_single
        from jurybox.errors import InputError

        rubric = self._rubric(parts)
        if not rubric.pass_rules:
            hint = "add `pass:` to its front matter, or assert on the report of `jury.evaluate`"
            raise InputError("the rubric has no pass rules", hint, rubric.id)
        report = self.evaluate(**{**parts, "rubric": rubric})
        ended = conclude_single(report, rubric)
        if ended.outcome != "fine":
            raise AssertionError(_message(report, ended.awaiting, parts))
        return report

    def evaluate(self, **parts: Any) -> "SingleReport":  # noqa: ANN401 - those of `evaluate`
        """Judge a response, or compare two, and return the report; see `jurybox.evaluate`.

        Raises:
            InputError: an argument can't be used, or, in CI, no replies are recorded.

        """
        __tracebackhide__ = True
        from jurybox.app.evaluate_once import evaluate
        from jurybox.app.view_run import single_cost
        from jurybox.models.function import function_names

        given: dict[str, Any] = {**self._usual, **parts, "rubric": self._rubric(parts)}
        self._judgments += 1
        names = function_names(given.get("judges") or ())
        if names and self._replays:
            return self._replay(names, given)
        report = evaluate(**given, on_exchange=self._note if names else None)
        self._dollars.append(single_cost(report))
        return report

    def close(self) -> tuple[int, int, int, float | None]:
        """Close the recording; return the counts of judgments, calls and replays, and the cost."""
        if self._recorder is not None:
            self._recorder.close()
        known = [each for each in self._dollars if each is not None]
        dollars = sum(known) if len(known) == len(self._dollars) else None
        return self._judgments, self._calls, self._replayed, dollars

    def _rubric(self, parts: dict[str, Any]) -> "Rubric":
        __tracebackhide__ = True
        from jurybox.errors import InputError
        from jurybox.rubric import Rubric
        from jurybox.wiring import load_rubric

        rubric = parts.get("rubric") or self._usual.get("rubric")
        if rubric is None:
            hint = "name one here, or with @pytest.mark.jury(rubric=...)"
            raise InputError("no rubric was given", hint)
        return rubric if isinstance(rubric, Rubric) else load_rubric(rubric)

    def _note(self, request: "ModelRequest", outcome: "Outcome") -> None:
        self._calls += 1
        if not self._record:
            return
        if self._recorder is None:
            from jurybox.models.recorded import Recorder

            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.unlink(missing_ok=True)
            self._recorder = Recorder(self._file)
        self._recorder(request, outcome)

    def _replay(self, judges: Sequence[str], given: dict[str, Any]) -> "SingleReport":
        __tracebackhide__ = True
        from jurybox.app.evaluate_once import judge_row, single_procedure, single_row
        from jurybox.app.event_loop import run_blocking
        from jurybox.errors import InputError
        from jurybox.models.recorded import ReplayModel

        if self._replies is None:
            if not self._file.exists():
                hint = f"record them with `pytest {_RECORD}` and commit the file"
                raise InputError("no replies are recorded", hint, str(self._file))
            self._replies = ReplayModel(self._file)
        row = single_row(**{name: value for name, value in given.items() if name not in _HOW})
        procedure = single_procedure(given["rubric"], row, judges, given.get("votes"))
        return run_blocking(judge_row(procedure, row, self._recorded))

    async def _recorded(self, request: "ModelRequest") -> "Outcome":
        from jurybox.engine.ports import ModelError
        from jurybox.judging.flow import Failure

        assert self._replies is not None  # noqa: S101 - set before the first request
        self._replayed += 1
        try:
            return await self._replies.complete(request)
        except ModelError as error:
            return Failure(kind=error.kind, message=str(error))


def _message(report: "SingleReport", awaiting: Sequence[str], parts: dict[str, Any]) -> str:
    """Return why a response doesn't pass: rules, criteria with their reasons, and the texts."""
    from jurybox.documents.numbers import show_number
    from jurybox.judging.evaluation_report import show_vote
    from jurybox.reporting.metric_text import as_clause

    lines = [f"the response doesn't pass `{report.rubric.id}` {report.rubric.version}", ""]
    lines += [f"{each.rule}  {_OUTCOMES[each.passed]}" for each in report.result.rules]
    lines += [f"awaiting review: {', '.join(awaiting)}"] if awaiting else []
    for lost in report.lost_votes:
        lines.append(f"vote {lost.vote + 1} of {lost.judge} is lost: {as_clause(lost.reason)}")
    for each in report.criteria:
        head = f"{each.id}  unscored"
        if each.score is not None:
            head = f"{each.id}  {show_number(each.score)} of {show_number(each.scale[1])}"
        if each.votes:
            head += f", votes {' '.join(map(show_vote, each.votes))}"
        lines += ["", head, _indented(each.reasoning)]
    for name in ("task", "response"):
        lines += ["", name, _indented(str(parts.get(name, "")))]
    return "\n".join(lines)


def _file_name(test: str) -> str:
    """Return a unique and portable file name for a test's recording."""
    name = test.replace("::", ".")
    if re.fullmatch(r"[\w.-]{1,100}", name):
        return f"{name}.jsonl"
    plain = re.sub(r"[^\w.-]", "_", name)[:50]
    return f"{plain}-{sha256(test.encode()).hexdigest()[:8]}.jsonl"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Print the number of judgments and calls, and the cost, of all tests on all workers."""
    totals: dict[str, list[Any]] = {name: [] for name in _COUNTS}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        # Every report of a test repeats its properties; the teardown's is the last.
        if getattr(report, "when", None) == "teardown":
            for name, value in report.user_properties:
                totals.get(name, []).append(value)
    from jurybox.documents.numbers import dollars

    judgments, calls, replayed, spent = (totals[name] for name in _COUNTS)
    if not judgments:
        return
    replays = f"{sum(replayed)} calls replayed, " if any(replayed) else ""
    price = "unknown" if None in spent else dollars(sum(spent))
    line = f"jury: {sum(judgments)} judgments, {replays}{sum(calls)} calls, cost {price}"
    terminalreporter.write_line(line)
