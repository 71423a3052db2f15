"""Two runs side by side in words: what a command prints and a page shows alike."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from jurybox.reporting.attention import Place
from jurybox.reporting.difference_tests import Difference
from jurybox.reporting.metric_text import shown, signed
from jurybox.reporting.run_diff import Change, RunDiff
from jurybox.reporting.view import RunView

_LONGEST: Final = 30
_SMALLEST_P: Final = 0.0001
_WORDS: Final = {True: "yes", False: "no", None: "-"}


def records_line(diff: RunDiff) -> str:
    """Say whether the records of two runs are the same."""
    if diff.identical is None:
        return "can't be compared as a whole: a run isn't finished"
    if diff.identical:
        return "identical, to the hash"
    return f"not identical: {diff.counts.identical_records} of them are the same in both"


def count_line(diff: RunDiff) -> str:
    """Say how many samples went where."""
    counts = diff.counts
    return ", ".join(
        (
            f"{counts.higher} higher",
            f"{counts.lower} lower",
            f"{counts.changed} changed otherwise",
            f"{counts.same} the same",
            f"{counts.only_in_a} only in A",
            f"{counts.only_in_b} only in B",
        )
    )


def p_value(p: float | None) -> str:
    """Return a p value for a table."""
    return "-" if p is None else f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"


def cautions(diff: RunDiff) -> Iterator[str]:
    """Say what may explain the differences before anybody reads them."""
    if diff.headline is None:
        yield "the rubrics have no score in common, so no sample is higher or lower"
    for each in diff.fields:
        yield f"differs  {each.field}: {_short(each.a)} | {_short(each.b)}"
    for name, view in (("A", diff.a), ("B", diff.b)):
        for note in view.notes:
            yield f"note on {name}  {note}"


def one_sided(tested: Sequence[Difference]) -> dict[tuple[int, int], list[str]]:
    """Return the figures that samples have in one run alone, by how many do."""
    found: dict[tuple[int, int], list[str]] = {}
    for each in tested:
        if each.only_in_a or each.only_in_b:
            found.setdefault((each.only_in_a, each.only_in_b), []).append(each.figure)
    return found


def gained(tested: Difference) -> bool:
    """Say whether a figure went the right way, by more than chance."""
    return tested.wanted != "neither" and tested.comparison.verdict == tested.wanted


def conclusion(diff: RunDiff) -> str:
    """Say what the tests come to."""
    levels = [
        f"{100 * each.comparison.interval.level:g}%"
        for each in diff.tested
        if each.comparison.interval is not None
    ]
    if diff.regressions:
        return f"regression at {levels[0]}: {', '.join(diff.regressions)}"
    better = [each.figure for each in diff.tested if gained(each)]
    if better:
        return f"gained at {levels[0]}: {', '.join(better)}; no regression"
    return "no figure is higher or lower by more than chance" + (
        f" at {levels[0]}" if levels else ""
    )


def changes_beside(change: Change, headline: str | None) -> Iterator[str]:
    """Say what changed beside the score as a whole."""
    for name, (a, b) in change.flips().items():
        yield f"{name} {word(a)} -> {word(b)}"
    for each in change.figures:
        if each.figure != headline and each.a != each.b:
            apart = "" if each.difference is None else f" ({signed(each.difference)})"
            yield f"{each.figure} {shown(each.a)} -> {shown(each.b)}{apart}"


def places(count: int, listed: Sequence[Place]) -> str:
    """Name samples, and how many more there are."""
    names = [
        place.id if place.repeat == 0 else f"{place.id} (repeat {place.repeat})" for place in listed
    ]
    more = [] if count == len(listed) else [f"and {count - len(listed)} more"]
    return f"{count}: {', '.join([*names, *more])}"


def verdicts(diff: RunDiff) -> Iterator[tuple[str, str]]:
    """Yield what was concluded from each run, by name."""
    for name in ("release_ready", "decision"):
        a, b = _verdict(diff.a, name), _verdict(diff.b, name)
        if (a, b) != (None, None):
            yield name.replace("_", " "), f"{word(a)} | {word(b)}"


def _verdict(view: RunView, name: str) -> bool | str | None:
    return view.as_data().get(name)


def word(value: bool | str | None) -> str:  # noqa: FBT001 - it is what is told, not a switch
    """Return a verdict as a word."""
    return _short(value) if isinstance(value, str) else _WORDS[value]


def _short(value: Any) -> str:  # noqa: ANN401 - anything that metadata can hold
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
