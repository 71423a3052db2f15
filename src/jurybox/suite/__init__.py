"""The suite: what a run is made of, as a file says it."""

from jurybox.suite.model import JudgeSpec, Suite, TargetInput, TargetSpec
from jurybox.suite.reading import JUDGE_KEYS, SUITE_KEYS, SuiteError, parse_suite
from jurybox.suite.target import TARGET_KEYS

__all__ = [
    "JUDGE_KEYS",
    "SUITE_KEYS",
    "TARGET_KEYS",
    "JudgeSpec",
    "Suite",
    "SuiteError",
    "TargetInput",
    "TargetSpec",
    "parse_suite",
]
