import msgspec
import pytest

from jurybox.engine.records import Facets, SampleRow, facets_of, label
from jurybox.scoring.sample_result import FLAGS, KINDS, MARKS, SampleResult, flag_names


def facets(metrics: dict[str, float | None] | None = None, **more: object) -> Facets:
    result = SampleResult(metrics=metrics or {}, **more)  # type: ignore[arg-type]
    return facets_of(stored(msgspec.json.encode(result).decode()))


def stored(result: str) -> SampleRow:
    return SampleRow(
        run_id="run", number=3, sample_id="s3", repeat=1, inputs="", responses="", report=None,
        automated=None, result=result, notes="", record_sha256="",
    )  # fmt: skip


def test_the_reasons_to_look_at_a_sample_come_first_among_the_flags() -> None:
    assert tuple(FLAGS)[: len(KINDS)] == tuple(KINDS)
    assert tuple(FLAGS)[len(KINDS) :] == tuple(MARKS)
    assert flag_names(sum(FLAGS.values())) == tuple(FLAGS)
    assert flag_names(0) == ()


@pytest.mark.parametrize(
    ("result", "flags", "urgency"),
    [
        ({}, (), 0),
        ({"safety_flag": True, "needs_review": True}, ("safety", "needs_review"), 5),
        ({"stable": False, "safety_flag": False}, ("unstable",), 4),
        ({"confidence": "low", "votes_valid": 1}, ("low_confidence",), 3),
        ({"confidence": "low", "votes_valid": 3}, ("low_confidence", "split"), 3),
        ({"confidence": "moderate", "votes_valid": 3}, ("split", "moderate_confidence"), 0),
        (
            {"confidence": "high", "votes_valid": 3, "passed": True},
            ("passed", "high_confidence"),
            0,
        ),
        ({"votes_requested": 3, "votes_valid": 1, "votes_skipped": 1}, ("lost_votes",), 0),
        ({"stable": True}, ("stable",), 0),
        ({"judged": True}, ("unscored",), 2),
        ({"target_error": "late", "passed": False}, ("target_error",), 0),
        ({"judge_fallback": True}, ("judge_fallback",), 0),
        ({"needs_review": True}, ("needs_review",), 1),
        ({"stable": False, "judged": True}, ("unstable", "unscored"), 4),
    ],
)
def test_flags_and_urgency(result: dict[str, object], flags: tuple[str, ...], urgency: int) -> None:
    found = facets(**result)  # type: ignore[arg-type]
    assert (flag_names(found.flags), found.urgency) == (flags, urgency)


def test_a_label_can_be_stored_and_is_short() -> None:
    assert label(None) is None
    assert label("a\0b") == "a\ufffdb"
    assert label("x" * 1000) == "x" * 300


@pytest.mark.parametrize("result", ["", "{", "[]", '{"metrics": {"tone": "4"}}', "null"])
def test_a_result_that_cant_be_read_has_nothing_to_be_found_by(result: str) -> None:
    found = facets_of(stored(result=result))
    assert (found.sample_id, found.flags, found.metrics) == ("s3", 0, "{}")
