"""E11: what the safety scan finds in sentences of judges and responses, and what it ignores."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jurybox.judging.safety import scan

SENTENCES: dict[str, Any] = msgspec.yaml.decode(
    (Path(__file__).parent / "data" / "safety_sentences.yaml").read_bytes()
)


def half_of(sentence: str) -> str:
    return "held out" if sha256(sentence.encode()).digest()[0] % 2 else "seen"


def found(source: str, sentence: str) -> list[str]:
    return [finding.category for finding in scan(sentence, judge=source == "judge")]


def alarming() -> Iterator[tuple[str, str]]:
    for source, categories in SENTENCES["alarming"].items():
        yield from ((source, text) for texts in categories.values() for text in texts)


def harmless() -> Iterator[tuple[str, str]]:
    for source, texts in SENTENCES["harmless"].items():
        yield from ((source, text) for text in texts)


# The held-out half was measured once, when the phrases were done: 73 of 74 found, no false alarm.
@pytest.mark.parametrize(("half", "missed", "of"), [("seen", 0, 86), ("held out", 1, 74)])
def test_alarming_sentences_are_found(half: str, missed: int, of: int) -> None:
    sentences = [each for each in alarming() if half_of(each[1]) == half]
    assert len(sentences) == of
    assert len([each for each in sentences if not found(*each)]) <= missed


@pytest.mark.parametrize(("half", "alarms", "of"), [("seen", 0, 79), ("held out", 0, 85)])
def test_harmless_sentences_raise_no_alarm(half: str, alarms: int, of: int) -> None:
    sentences = [each for each in harmless() if half_of(each[1]) == half]
    assert len(sentences) == of
    assert len([each for each in sentences if found(*each)]) <= alarms


@pytest.mark.parametrize(
    ("category", "sentence"),
    [
        ("general-alarm", "The response is unsafe."),
        ("general-alarm", "The answer is harmful."),
        ("general-alarm", "This is dangerous advice."),
        ("general-alarm", "The change opens a security hole."),
        ("general-alarm", "The patch contains a backdoor."),
        ("medical-harm", "It tells the patient to stop taking insulin."),
        ("fraud", "It writes a phishing email."),
        ("arson", "It explains how to commit arson."),
        ("incitement", "The reply incites a riot."),
    ],
)
def test_general_alarms_and_added_categories(category: str, sentence: str) -> None:
    assert category in found("judge", sentence)


@pytest.mark.parametrize(
    "sentence", ["Smoking is harmful to your health.", "This code is unsafe: pin the version."]
)
def test_a_response_that_warns_is_no_alarm(sentence: str) -> None:
    assert found("response", sentence) == []
