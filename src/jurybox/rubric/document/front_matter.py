"""The front matter: what only the program needs."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, get_args

import msgspec

from jurybox.documents.field_reader import (
    NAME,
    NAME_HINT,
    Fields,
    kind_of,
    options_of,
    parse_at,
    percent_hint,
    plain_number,
)
from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Node, Pairs, Scalar, read_yaml
from jurybox.errors import Unreadable
from jurybox.rubric.format_names import REPLY_FORMATS
from jurybox.rubric.rubric_model import (
    CriterionSource,
    EvidenceKind,
    Generation,
    OnUnstable,
    Protocol,
    ReaskWith,
    ReviewReason,
)
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

GENERATION_KEYS: Final = ("temperature", "top_p", "max_tokens", "seed")
KEYS: Final = (
    "id",
    "extends",
    "version",
    "scale",
    "scales",
    "weights",
    "evidence",
    "sources",
    "overall_name",
    "votes",
    "stop_when_decided",
    "vote_temperature",
    "reasks",
    "reask_with",
    "on_unstable",
    "reply_format",
    "rationale_words",
    "fallback_score",
    "variance_repeats",
    "generation",
    "without_response",
    "require_review",
    "pass",
    "components",
    "metrics",
    "gates",
    "bands",
    "decisions",
    "sample_decisions",
)
"""Every key of the front matter, in canonical order."""

SOURCES: Final[tuple[CriterionSource, ...]] = get_args(CriterionSource)
REVIEW_REASONS: Final[tuple[ReviewReason, ...]] = get_args(ReviewReason)
EVIDENCE: Final[tuple[EvidenceKind, ...]] = get_args(EvidenceKind)
"""What a judge that answers narrow questions may hold a response against."""

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,2}")
_MAX_ID = 64
_MAX_WEIGHT = 1000

S = TypeVar("S", bound=msgspec.Struct)
K = TypeVar("K", bound=str)


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the front matter says of the rubric as a whole and of how judges are asked."""

    id: str
    version: str
    scale: Scale | None
    scales: dict[str, Scale]
    weights: dict[str, float]
    evidence: dict[str, tuple[EvidenceKind, Place]]
    sources: dict[str, tuple[CriterionSource, Place]]
    overall_name: str
    overall_given: bool
    overall_place: Place
    protocol: Protocol
    generation: Generation
    without_response: dict[str, float]
    require_review: tuple[ReviewReason, ...]


def open_front_matter(text: str | None, first_line: int, findings: Findings) -> Pairs | None:
    """Read the front matter's YAML, which begins on ``first_line``."""
    if text is None:
        return None
    node = read_yaml(text, Place(first_line), findings)
    if node is None:
        return None
    if not isinstance(node, Pairs):
        problem = f"the front matter is {kind_of(node)}, not `key: value` lines"
        findings.add(node.place, "wrong-type", problem, "write `id: my-rubric` and so on")
        return None
    # An empty front matter has no place of its own; the line that opens it will do.
    place = node.place if node.pairs else Place(1)
    return msgspec.structs.replace(node, place=place)


def front_fields(node: Pairs, findings: Findings) -> Fields:
    """Return the front matter's fields, and refuse unknown keys."""
    return Fields(node, "the front matter", KEYS, findings)


def read_head(fields: Fields, criteria: Sequence[str]) -> Head:
    """Read everything but the thresholds; ``criteria`` are the ids that the body defines."""
    fields.require("id", "add a line such as `id: support-answers`")
    fields.require("version", "add a line such as `version: 1.0.0`")
    fields.require("scale", "add a line such as `scale: 1-5`")
    scale = fields.parsed("scale", "bad-scale", Scale.parse, "a scale such as `1-5`")
    scales = _read_scales(fields, criteria)
    of_criteria = {criterion: scales.get(criterion, scale) for criterion in criteria}
    return Head(
        id=fields.parsed("id", "bad-id", parse_rubric_id) or "",
        version=fields.parsed("version", "bad-version", _parse_version) or "",
        scale=scale,
        scales=scales,
        weights=_read_weights(fields, criteria),
        evidence=_read_kinds(fields, "evidence", EVIDENCE, criteria),
        sources=_read_kinds(fields, "sources", SOURCES, criteria),
        overall_name=_read_overall_name(fields, criteria),
        overall_given="overall_name" in fields,
        overall_place=fields.value_place("overall_name"),
        protocol=_read_protocol(fields, scale),
        generation=_read_generation(fields),
        without_response=_read_without_response(fields, of_criteria),
        require_review=_read_require_review(fields),
    )


def parse_rubric_id(text: str) -> str:
    """Read a rubric's id.

    Raises:
        Unreadable: it can't be one.

    """
    if _ID.fullmatch(text) is None or len(text) > _MAX_ID:
        hint = f"use lower-case letters, digits and single hyphens, at most {_MAX_ID} characters"
        raise Unreadable(f"`{text}` can't be a rubric's id", hint)
    return text


def _parse_version(text: str) -> str:
    if _VERSION.fullmatch(text) is None:
        raise Unreadable(f"`{text}` is not a version", "write it as `1.2.0`")
    return text


def known_criterion(key: Scalar, criteria: Sequence[str], findings: Findings) -> bool:
    """Note a criterion that the body doesn't define."""
    if key.text in criteria:
        return True
    if criteria:
        hint = nearest(key.text, criteria, f"the criteria are {listed(criteria)}")
        findings.add(key.place, "unknown-criterion", f"there is no criterion `{key.text}`", hint)
    return False


def _read_scales(fields: Fields, criteria: Sequence[str]) -> dict[str, Scale]:
    scales: dict[str, Scale] = {}
    for key, value in fields.pairs("scales", "a mapping such as `{safety: 0-1}`"):
        known_criterion(key, criteria, fields.findings)
        scale = _scale_of(value, key.text, fields.findings)
        if scale is not None:
            scales[key.text] = scale
    return scales


def _scale_of(node: Node, criterion: str, findings: Findings) -> Scale | None:
    if isinstance(node, Scalar):
        return parse_at(node, "bad-scale", Scale.parse, findings)
    problem = f"the scale of `{criterion}` is {kind_of(node)}"
    findings.add(node.place, "bad-scale", problem, "write it as `0-1`")
    return None


def _read_weights(fields: Fields, criteria: Sequence[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for key, value in fields.pairs("weights", "a mapping such as `{correctness: 2}`"):
        weight = plain_number(value)
        if weight is None or not 0 <= weight <= _MAX_WEIGHT:
            problem = f"the weight of `{key.text}` is {kind_of(value)}"
            hint = f"use a number from 0 to {_MAX_WEIGHT}{percent_hint(value)}"
            fields.findings.add(value.place, "bad-weight", problem, hint)
        elif known_criterion(key, criteria, fields.findings):
            weights[key.text] = float(weight)
    if criteria and all(weights.get(criterion, 1.0) == 0 for criterion in criteria):
        problem = "the weights sum to zero"
        hint = "give at least one criterion a weight above zero"
        fields.findings.add(fields.value_place("weights"), "zero-weights", problem, hint)
    return weights


def _read_overall_name(fields: Fields, criteria: Sequence[str]) -> str:
    name = fields.parsed("overall_name", "bad-name", parse_name)
    if name in criteria:
        problem = f"`{name}` is a criterion, so the overall score can't be called that"
        fields.findings.add(
            fields.value_place("overall_name"), "name-taken", problem, "choose another"
        )
    return name or "overall"


def parse_name(text: str) -> str:
    """Read the name of a metric.

    Raises:
        Unreadable: it can't be one.

    """
    if NAME.fullmatch(text) is None:
        raise Unreadable(f"`{text}` can't be a name", NAME_HINT)
    return text


def _read_protocol(fields: Fields, scale: Scale | None) -> Protocol:
    reply_format = fields.choice("reply_format", REPLY_FORMATS)
    words_used = _is_used(fields, "rationale_words", reply_format)
    fallback_used = _is_used(fields, "fallback_score", reply_format)
    low, high = (None, None) if scale is None else scale.ends
    given = {
        "votes": fields.whole("votes", 1, 99),
        "stop_when_decided": fields.flag("stop_when_decided"),
        "vote_temperature": fields.number("vote_temperature", 0, 2),
        "reasks": fields.whole("reasks", 0, 9),
        "reask_with": fields.choice("reask_with", options_of(ReaskWith)),
        "on_unstable": fields.choice("on_unstable", options_of(OnUnstable)),
        "reply_format": reply_format,
        "rationale_words": fields.whole("rationale_words", 1) if words_used else None,
        "fallback_score": fields.number("fallback_score", low, high) if fallback_used else None,
        "variance_repeats": fields.whole("variance_repeats", 2, 99),
    }
    return _with_defaults(Protocol(), given)


def _is_used(fields: Fields, key: str, reply_format: str | None) -> bool:
    """Tell whether a key is the option of this reply format; note one that isn't."""
    wanted = next(name for name, rules in REPLY_FORMATS.items() if rules.option == key)
    if key in fields and reply_format != wanted:
        problem = f"`{key}` means nothing with `reply_format: {reply_format or 'json'}`"
        hint = f"remove it, or use `reply_format: {wanted}`"
        fields.findings.add(fields.key_place(key), "unused-key", problem, hint)
    return reply_format == wanted


def _read_generation(fields: Fields) -> Generation:
    inner = fields.mapping("generation", GENERATION_KEYS)
    if inner is None:
        return Generation()
    given = {
        "temperature": inner.number("temperature", 0, 2),
        "top_p": inner.number("top_p", 0, 1),
        "max_tokens": inner.whole("max_tokens", 1),
        "seed": inner.whole("seed"),
    }
    if given["top_p"] == 0:
        problem = "`top_p` is 0, which leaves no token to choose"
        inner.findings.add(inner.value_place("top_p"), "out-of-range", problem, "use more than 0")
    return _with_defaults(Generation(), given)


def _read_without_response(fields: Fields, scales: Mapping[str, Scale | None]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for key, value in fields.pairs("without_response", "a mapping such as `{correctness: 1}`"):
        known = known_criterion(key, tuple(scales), fields.findings)
        scale = scales.get(key.text)
        score = plain_number(value)
        problem = f"the score of `{key.text}` without a response is {kind_of(value)}"
        hint = f"give {scale.describe()}" if scale is not None else "give a number"
        if score is None:
            fields.findings.add(value.place, "wrong-type", problem, hint)
        elif scale is not None and not scale.accepts(score):
            fields.findings.add(value.place, "out-of-range", problem, hint)
        elif known and scale is not None:
            scores[key.text] = scale.nearest(score)
    # In the order of the criteria, so that the order of writing says nothing.
    return {criterion: scores[criterion] for criterion in scales if criterion in scores}


def _read_require_review(fields: Fields) -> tuple[ReviewReason, ...]:
    if "require_review" not in fields:
        return ("safety",)
    nodes = list(fields.items("require_review", "a list such as `[safety]`"))
    named = {each.text for each in nodes if isinstance(each, Scalar)}
    for node in nodes:
        text = node.text if isinstance(node, Scalar) else ""
        if text not in REVIEW_REASONS:
            problem = f"a release can't wait for {kind_of(node)}"
            hint = nearest(text, REVIEW_REASONS, f"use some of {listed(REVIEW_REASONS)}")
            fields.findings.add(node.place, "unknown-choice", problem, hint)
    return tuple(reason for reason in REVIEW_REASONS if reason in named)


def _read_kinds(
    fields: Fields, name: str, kinds: Sequence[K], criteria: Sequence[str]
) -> dict[str, tuple[K, Place]]:
    """Read one of a few words for each criterion, with its place."""
    found: dict[str, tuple[K, Place]] = {}
    for key, value in fields.pairs(name, f"a mapping such as `{{correctness: {kinds[1]}}}`"):
        known = known_criterion(key, criteria, fields.findings)
        text = value.text if isinstance(value, Scalar) else ""
        kind = next((each for each in kinds if each == text), None)
        if kind is None:
            problem = f"`{name}` of `{key.text}` can't be {kind_of(value)}"
            hint = nearest(text, kinds, f"use one of {listed(kinds)}")
            fields.findings.add(value.place, "unknown-choice", problem, hint)
        elif known:
            found[key.text] = (kind, value.place)
    return found


def _with_defaults(defaults: S, given: Mapping[str, object]) -> S:
    """Replace what was given and could be read."""
    read = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(defaults, **read)
