"""Whatever a rubric says, its canonical text says the same."""

import re
from typing import get_args

import msgspec
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from markdown_it import MarkdownIt

from jurybox.rubric import Criterion, Level, Rubric, Scale, check_rubric, render_rubric
from jurybox.rubric.conditions import OPERATORS, Comparison
from jurybox.rubric.format_names import REPLY_FORMATS
from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    LOWEST_SCENARIO,
    MEASURES,
    RATES,
    SAMPLE_SCORE,
    SAMPLES,
    SUMMARY_PARTS,
    WIN_RATE,
    Formula,
    Ratio,
    Share,
    Statistic,
    run_metrics,
    sample_metrics,
)
from jurybox.rubric.rubric_model import (
    Band,
    Component,
    Decision,
    EvidenceKind,
    Generation,
    Indicators,
    Metric,
    Protocol,
    Section,
)
from jurybox.rubric.rules import (
    SIGNALS,
    Adjustment,
    Condition,
    HasPhrase,
    HasSignal,
    Lexicon,
    Rules,
    SignalWithin,
)
from jurybox.rubric.template import PLACEHOLDERS, Template

MARKDOWN = MarkdownIt("commonmark").enable("table")

# Pieces that mean something to Markdown, to YAML or to the format, and some that should not.
NASTY = [
    "|", "\\|", "\\", "`", "``", "```", "~~~", "#", "##", "#hash", "-", "--", "---", "- item",
    "*", "**bold**", "_under_", "+", "1.", "1)", "2. two", "10) ten", ":", "key: value", "::",
    "'", '"', "it's", "{", "}", "{{task}}", "{response}", "[", "]", "[x]: /y", "<", ">",
    "> quote", "<b>", "<!-- note -->", "&", "&amp;", "*alias", "!tag", "!!str", "%", "@", "?",
    "? key", ",", "===", "0.5", "1-5", "null", "yes", "é", "ß", "正確さ", "\u00a0", "\u200d",
    "\u202e", "\U0001f600", "\ufeff", "\u2028", "Criteria", "\t", "Positive:", "**Negative:**",
    "\\n", "\\`",
]  # fmt: skip
WORDS = st.sampled_from([*NASTY, "plain", "words", "stand", "here"])


def joined(separator: str, most: int = 6) -> SearchStrategy[str]:
    return st.lists(WORDS, min_size=1, max_size=most).map(separator.join)


# A document holds no control characters, nor the two that are no characters at all.
CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff"
)
LINE = st.one_of(joined(" "), joined(""), st.text(CHARACTERS, max_size=12))
ONE_LINE = LINE.map(lambda text: " ".join(text.split()))
SOME_TEXT = ONE_LINE.filter(bool)
NAME = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


def block_kinds(text: str) -> set[str]:
    return {token.type for token in MARKDOWN.parse(text) if token.level == 0}


def stands_alone(text: str, allowed: set[str]) -> bool:
    """Tell whether the blocks of a text are of the allowed kinds, and it ends where it ends."""
    if not text:
        return True
    kinds = block_kinds(f"### Before\n\n{text}\n\n### After")
    after = MARKDOWN.parse(f"{text}\n\n### After")
    ends = len(after) > 1 and after[-2].content == "After"
    return ends and kinds - {"heading_open", "heading_close"} <= allowed


def hides_heading(text: str) -> bool:
    """Tell whether HTML takes in a heading, or what looks like one."""
    html = [token.content for token in MARKDOWN.parse(text) if token.type == "html_block"]
    return any(re.search(r"^ {0,3}#{1,6}(?:[ \t]|$)", each, re.MULTILINE) for each in html)


def swallows_structure(text: str) -> bool:
    """Tell whether a row of a table or a fence stands where Markdown takes it for text."""
    lines = text.split("\n")
    kinds = {"paragraph_open", "html_block", "blockquote_open"}
    spans = [token.map or [0, 0] for token in MARKDOWN.parse(text) if token.type in kinds]
    within = [line for start, end in spans for line in lines[start:end]]
    return any(re.match(r" {0,3}(?:\||```|~~~)", line) for line in within)


def reads_as_text(text: str) -> bool:
    """Tell whether no line of a criterion's text looks like a table's or a fenced block's."""
    fenced = {
        line
        for token in MARKDOWN.parse(text)
        if token.type == "fence" and token.level == 0 and token.map
        for line in range(*token.map)
    }
    rest = [line for index, line in enumerate(text.split("\n")) if index not in fenced]
    return not any(re.match(r" {0,3}(?:\||```|~~~)", line) for line in rest)


PROSE = {"paragraph_open", "paragraph_close", "hr", "code_block", "html_block", "fence"}
PROSE |= {"blockquote_open", "blockquote_close"}
ANYTHING = PROSE | {
    "bullet_list_open",
    "bullet_list_close",
    "ordered_list_open",
    "ordered_list_close",
}
ANYTHING |= {"table_open", "table_close"}
NO_HEADING = 7


def highest_heading(text: str) -> int:
    return min(
        (
            int(token.tag[1])
            for token in MARKDOWN.parse(text)
            if token.type == "heading_open" and token.level == 0
        ),
        default=NO_HEADING,
    )


def paragraphs(allowed: set[str], lowest_rank: int) -> SearchStrategy[str]:
    lines = st.lists(LINE, max_size=5).map("\n".join)
    trimmed = lines.map(
        lambda text: re.sub(r"\A(?:\s*\n)+|(?:\n\s*)+\Z", "", text) if text.strip() else ""
    )
    return trimmed.filter(
        lambda text: (
            stands_alone(text, allowed)
            and highest_heading(text) >= lowest_rank
            and not hides_heading(text)
            and not swallows_structure(text)
        )
    )


def is_heading(text: str) -> bool:
    """Tell whether a line is what a heading with these words says."""
    tokens = MARKDOWN.parse(f"# {text}")
    return tokens[1].content == text and not re.search(r"(^|\s)#+$", text)


HEADING = SOME_TEXT.filter(is_heading)


@st.composite
def scales(draw: DrawFn) -> Scale:
    decimals = draw(st.sampled_from([None, 0, 1, 3]))
    if decimals is None:
        low = draw(st.integers(-999, 999))
        return Scale(low=low, high=low + draw(st.integers(1, 100)))
    unit = 10**decimals
    low = draw(st.integers(-3 * unit, 3 * unit))
    high = low + draw(st.integers(1, 3 * unit))
    return Scale(low=low / unit, high=high / unit, continuous=True)


def decimals_of(scale: Scale) -> int:
    """Return how many decimals it takes to write the ends of a scale."""
    return next(d for d in range(4) if all(round(e, d) == e for e in (scale.low, scale.high)))


Ends = tuple[float | None, float | None]


@st.composite
def comparisons(draw: DrawFn, metrics: dict[str, Ends]) -> Comparison:
    """A comparison with a value that its metric can have, written with at most six decimals."""
    name = draw(st.sampled_from(list(metrics)))
    low, high = metrics[name]
    unit = 10 ** draw(st.integers(3, 6))
    first = -(10**9) if low is None else round(low * unit)
    last = 10**9 if high is None else round(high * unit)
    operator = draw(st.sampled_from(list(OPERATORS)))
    # Nothing is below the lowest value or above the highest.
    first, last = first + (operator == "<"), last - (operator == ">")
    return Comparison(name=name, operator=operator, number=draw(st.integers(first, last)) / unit)


def comparison_lists(
    metrics: dict[str, Ends], least: int = 0
) -> SearchStrategy[tuple[Comparison, ...]]:
    return st.lists(comparisons(metrics), min_size=least, max_size=3).map(tuple)


class Levels(msgspec.Struct, frozen=True):
    """What a table of levels gives a criterion."""

    columns: tuple[str, ...] = ()
    rows: tuple[Level, ...] = ()
    decimals: int = 0


# A first column that is headed by a score would be a table without a header.
SCORE_HEADING = st.one_of(
    st.just("Score"), ONE_LINE.filter(lambda text: not re.search("[0-9]", text))
)


@st.composite
def levels(draw: DrawFn, scale: Scale) -> Levels:
    """Points, or bands without a gap, highest or lowest first."""
    decimals = decimals_of(scale) + draw(st.integers(0, 1)) if scale.continuous else 0
    unit = 10**decimals
    first, last = round(scale.low * unit), round(scale.high * unit)
    cuts = draw(st.lists(st.integers(first, last), max_size=4, unique=True).map(sorted))
    if not cuts:
        return Levels()
    starts = ends = cuts
    if draw(st.booleans()):
        starts = [first, *(cut for cut in cuts if cut > first)]
        ends = [*(start - 1 for start in starts[1:]), last]
    columns = draw(
        st.tuples(SCORE_HEADING, ONE_LINE) | st.tuples(SCORE_HEADING, ONE_LINE, ONE_LINE)
    )
    rows = [
        Level(
            low=start / unit,
            high=end / unit,
            meaning=draw(SOME_TEXT),
            label=draw(ONE_LINE) if len(columns) == 3 else "",
        )
        for start, end in zip(starts, ends, strict=True)
    ]
    if draw(st.booleans()):
        rows.reverse()
    return Levels(columns, tuple(rows), decimals)


def is_label(text: str) -> bool:
    return is_heading(text) and text == text.strip("*_: ")


def is_item(text: str) -> bool:
    """Tell whether a text is all of one item, wherever it stands, and takes in no table."""
    if "\n|" in text:
        return False
    block = "- " + text.replace("\n", "\n  ")
    tokens = MARKDOWN.parse(f"{block}\n- next\n\n### After")
    items = [token for token in tokens if token.type == "list_item_open" and token.level == 1]
    return (
        len(items) == 2 and tokens[0].type == "bullet_list_open" and tokens[-2].content == "After"
    )


@st.composite
def items(draw: DrawFn) -> str:
    first = draw(SOME_TEXT)
    rest = draw(st.lists(ONE_LINE.map(str.rstrip), max_size=2))
    return "\n".join([first, *rest]).rstrip()


LABEL = st.one_of(
    st.sampled_from(["Positive indicators", "Negative signs", "Indicators"]), HEADING
).filter(is_label)
INDICATORS = st.lists(
    st.builds(
        Indicators,
        label=LABEL,
        items=st.lists(items().filter(is_item), min_size=1, max_size=3).map(tuple),
        text=st.just("") | paragraphs(PROSE, NO_HEADING).filter(reads_as_text),
    ),
    max_size=3,
    unique_by=lambda indicators: indicators.label,
).map(tuple)

PHRASES = st.lists(SOME_TEXT, min_size=1, max_size=4, unique_by=str.casefold).map(tuple)


@st.composite
def lexicons(draw: DrawFn, taken: frozenset[str] = frozenset()) -> tuple[Lexicon, ...]:
    names = draw(st.lists(NAME.filter(lambda name: name not in taken), max_size=3, unique=True))
    match = st.sampled_from(["word-start", "whole-word"])
    return tuple(Lexicon(name=name, phrases=draw(PHRASES), match=draw(match)) for name in names)


SPEAKER = st.sampled_from(["response", "user"])


@st.composite
def word_counts(draw: DrawFn) -> SignalWithin:
    low, high = sorted(draw(st.tuples(st.integers(0, 500), st.integers(0, 500))))
    ends = draw(st.sampled_from([(low, high), (None, high), (low, None)]))
    return SignalWithin(signal=f"{draw(SPEAKER)}_words", low=ends[0], high=ends[1])


def key_of(condition: Condition) -> str:
    match condition:
        case HasPhrase():
            return f"{condition.text} {condition.present}"
        case SignalWithin():
            return condition.signal
        case HasSignal():
            return str(condition.present)


def conditions(names: list[str]) -> SearchStrategy[tuple[Condition, ...]]:
    phrase = st.builds(
        HasPhrase,
        text=SPEAKER,
        lexicon=st.one_of(PHRASES, st.sampled_from(names)) if names else PHRASES,
        present=st.booleans(),
    )
    signal = st.builds(HasSignal, signal=st.sampled_from(list(SIGNALS)), present=st.booleans())
    one = st.one_of(phrase, word_counts(), signal)
    return st.lists(one, min_size=1, max_size=3, unique_by=key_of).map(tuple)


@st.composite
def rules(draw: DrawFn, scale: Scale, shared: tuple[Lexicon, ...]) -> Rules:
    own = draw(lexicons(frozenset(each.name for each in shared)))
    names = [each.name for each in (*own, *shared)]
    sets = st.lists(conditions(names), min_size=1, max_size=3).map(tuple)
    amount = st.integers(1, 2000).map(lambda thousandths: thousandths / 1000)
    adjustment = st.builds(
        Adjustment,
        add=st.one_of(amount, amount.map(lambda value: -value)),
        when=sets,
        why=ONE_LINE,
    )
    return Rules(
        base=draw(st.sampled_from([scale.low, scale.high])),
        adjustments=tuple(draw(st.lists(adjustment, max_size=3))),
        lexicons=own,
    )


@st.composite
def criteria(
    draw: DrawFn, criterion_id: str, common: Scale, shared: tuple[Lexicon, ...]
) -> Criterion:
    scale = draw(st.one_of(st.just(common), scales()))
    ruled = scale.continuous and draw(st.booleans())
    table = draw(levels(scale))
    return Criterion(
        id=criterion_id,
        name=draw(st.one_of(st.just(criterion_id), HEADING)),
        scale=scale,
        definition=draw(paragraphs(PROSE, 4).filter(reads_as_text)),
        weight=draw(st.integers(0, 4000)) / 1000,
        evidence=draw(st.sampled_from(get_args(EvidenceKind))),
        levels=table.rows,
        level_columns=table.columns,
        level_decimals=table.decimals,
        indicators=draw(INDICATORS),
        rules=draw(rules(scale, shared)) if ruled else None,
    )


@st.composite
def protocols(draw: DrawFn, scale: Scale, ids: list[str]) -> Protocol:
    formats = [each for each in REPLY_FORMATS if each != "strict-json"]
    reply_format = draw(
        st.sampled_from([*formats, *([] if "rationale" in ids else ["strict-json"])])
    )
    words = draw(st.none() | st.integers(1, 500)) if reply_format == "strict-json" else None
    fallback = (
        draw(st.sampled_from([None, scale.low, scale.high]))
        if reply_format == "score-line"
        else None
    )
    return Protocol(
        votes=draw(st.integers(1, 99)),
        vote_temperature=draw(st.integers(0, 200)) / 100,
        reasks=draw(st.integers(0, 9)),
        reask_with=draw(st.sampled_from(["defect", "same"])),
        on_unstable=draw(st.sampled_from(["tie", "review"])),
        reply_format=reply_format,
        rationale_words=words,
        fallback_score=fallback,
        variance_repeats=draw(st.integers(2, 99)),
    )


GENERATION = st.builds(
    Generation,
    temperature=st.integers(0, 200).map(lambda value: value / 100),
    top_p=st.integers(1, 100).map(lambda value: value / 100),
    max_tokens=st.integers(1, 10**6),
    seed=st.integers(-(10**9), 10**9),
)


@st.composite
def scores_without_response(draw: DrawFn, scales_: dict[str, Scale]) -> dict[str, float]:
    ids = draw(st.permutations(list(scales_)))
    ends = {each: [scales_[each].low, scales_[each].high] for each in ids}
    return {each: draw(st.sampled_from(ends[each])) for each in ids if draw(st.booleans())}


@st.composite
def components(draw: DrawFn, ids: list[str], overall: str) -> tuple[Component, ...]:
    usable = NAME.filter(lambda name: not is_taken(name) and name not in (*ids, overall))
    names = draw(st.lists(usable, max_size=3, unique=True))
    shares = {0: [], 1: [1.0], 2: [0.25, 0.75], 3: [0.45, 0.3, 0.25]}[len(names)]
    made: list[Component] = []
    for name, weight in zip(names, shares, strict=True):
        of = draw(st.sampled_from([*ids, *MEASURES]))
        full_until = draw(st.integers(1, 9000)) if of in MEASURES else None
        made.append(Component(name=name, of=of, weight=weight, full_until=full_until))
    return tuple(made)


@st.composite
def formulas(draw: DrawFn, metrics: dict[str, Ends]) -> Formula:
    name = draw(st.sampled_from(list(metrics)))
    by = st.one_of(
        st.sampled_from(["mean", "sum", "min", "max"]), st.integers(1, 99).map("p{}".format)
    )
    where = draw(comparisons(metrics))
    return draw(
        st.one_of(
            st.builds(Statistic, by=by, of=st.just(name)),
            st.just(Share(where=where)),
            st.just(Ratio(of=name, where=where)),
        )
    )


@st.composite
def bands(draw: DrawFn) -> tuple[tuple[Band, ...], int]:
    """Bands, the highest first, and how many decimals they are written with."""
    decimals = draw(st.integers(0, 3))
    unit = 10**decimals
    lows = draw(st.lists(st.integers(1, unit), max_size=3, unique=True).map(sorted))
    if not lows:
        return (), 0
    labels = draw(st.lists(SOME_TEXT, min_size=len(lows) + 1, max_size=len(lows) + 1, unique=True))
    made = [
        Band(label=label, low=low / unit, meaning=draw(ONE_LINE))
        for label, low in zip(labels, [0, *lows], strict=True)
    ]
    return tuple(reversed(made)), decimals


@st.composite
def decisions(draw: DrawFn, metrics: dict[str, Ends]) -> tuple[Decision, ...]:
    if draw(st.booleans()):
        return ()
    made: list[Decision] = []
    for _ in range(draw(st.integers(0, 2))):
        rules_ = draw(comparison_lists(metrics, least=1))
        either = draw(st.booleans())
        made.append(
            Decision(
                decide=draw(NAME),
                when_any=rules_ if either else (),
                when_all=() if either else rules_,
                meaning=draw(ONE_LINE),
            )
        )
    return (*made, Decision(decide=draw(NAME), meaning=draw(ONE_LINE)))


@st.composite
def templates(draw: DrawFn) -> Template:
    double = draw(st.booleans())
    hole = "{{%s}}" if double else "{%s}"
    names = draw(st.lists(st.sampled_from(list(PLACEHOLDERS)), max_size=3))
    pieces = [hole % name for name in ["response", *names]]
    braces = [
        '{"score": 1}',
        "{}",
        "{ task }",
        '{"a": {"b": []}}',
        *(["{score}"] if double else []),
    ]
    line = LINE.map(lambda text: re.sub(r"[{}]", "", text)) | st.sampled_from(braces)
    around = st.lists(line, max_size=3).map("\n".join)
    return Template(text="".join(piece + draw(around) for piece in pieces))


@st.composite
def sections(draw: DrawFn, rubric_has: dict[str, bool]) -> tuple[Section, ...]:
    made: list[Section] = []
    for title, allowed, rank in (
        ("Criteria", ANYTHING, 4),
        ("Lexicons", ANYTHING - {"fence"}, 3),
        ("Judge prompt", ANYTHING - {"fence"}, 3),
    ):
        text = draw(paragraphs(allowed, rank)) if rubric_has[title] else ""
        if text:
            made.append(Section(title=title, text=text))
    # A section called almost like one with a meaning is refused.
    title = st.one_of(
        st.just(""),
        HEADING.filter(lambda text: not re.match("criteri|lexicon|judge", text, re.IGNORECASE)),
    )
    free = st.builds(Section, title=title, text=paragraphs(ANYTHING, 3))
    return (*made, *draw(st.lists(free, max_size=2)))


RESERVED = {
    *sample_metrics((), overall="", components=True),
    *run_metrics((), overall="", components=True),
}


def is_taken(name: str) -> bool:
    return name in RESERVED or f"{name}_mean" in RESERVED


def ends_in_a_sample(
    scales_: dict[str, Scale], overall: str, *, components: bool
) -> dict[str, Ends]:
    known = sample_metrics(scales_, overall=overall, components=components)
    ends: dict[str, Ends] = dict.fromkeys(known, (None, None))
    ends |= dict.fromkeys(MEASURES, (0, None))
    ends |= {name: (0, 1) for name in (overall, SAMPLE_SCORE) if name in ends}
    return ends | {name: (scale.low, scale.high) for name, scale in scales_.items()}


def ends_in_a_run(scales_: dict[str, Scale], overall: str, *, components: bool) -> dict[str, Ends]:
    known = run_metrics(scales_, overall=overall, components=components)
    ends: dict[str, Ends] = dict.fromkeys(known, (None, None)) | {SAMPLES: (0, None)}
    shares = (*RATES, WIN_RATE, f"{overall}_mean", AGGREGATE_SCORE, LOWEST_SCENARIO)
    ends |= {name: (0, 1) for name in shares if name in ends}
    return ends | {f"{name}_mean": (scale.low, scale.high) for name, scale in scales_.items()}


def ends_of_metric(formula: Formula, of_sample: dict[str, Ends]) -> Ends:
    match formula:
        case Share():
            return (0, 1)
        case Statistic(by=by, of=of) if by != "sum":
            return of_sample[of]
        case _:
            return (None, None)


@st.composite
def names(draw: DrawFn) -> tuple[list[str], str]:
    """The ids of the criteria and the name of the overall score."""
    overall = draw(st.sampled_from(["overall", "overall_quality", "q"]))
    free = NAME.filter(lambda name: not is_taken(name))
    own = st.one_of(free, st.sampled_from(["rationale", "overall"])).filter(
        lambda name: name != overall
    )
    return draw(st.lists(own, min_size=1, max_size=3, unique=True)), overall


@st.composite
def rubrics(draw: DrawFn) -> Rubric:
    scale = draw(scales())
    shared = draw(lexicons())
    ids, overall = draw(names())
    made = [draw(criteria(each, scale, shared)) for each in ids]
    if not any(criterion.weight for criterion in made):
        made[0] = msgspec.structs.replace(made[0], weight=1.0)
    parts = draw(components(ids, overall))
    own_scales = {criterion.id: criterion.scale for criterion in made}
    of_sample = ends_in_a_sample(own_scales, overall, components=bool(parts))
    of_run = ends_in_a_run(own_scales, overall, components=bool(parts))
    metric_names = draw(
        st.lists(
            NAME.filter(lambda name: name not in of_run and name not in SUMMARY_PARTS),
            max_size=2,
            unique=True,
        )
    )
    metrics = tuple(Metric(name=name, formula=draw(formulas(of_sample))) for name in metric_names)
    of_run |= {metric.name: ends_of_metric(metric.formula, of_sample) for metric in metrics}
    levels_of_quality, band_decimals = draw(bands())
    template = draw(st.none() | templates())
    protocol = draw(protocols(scale, ids))
    judged = sum(each.source == "judge" for each in made)
    # Such a document is refused: one score can't be that of several criteria among others.
    assume(not (REPLY_FORMATS[protocol.reply_format].one_score and 1 < judged < len(made)))
    has = {"Criteria": True, "Lexicons": bool(shared), "Judge prompt": template is not None}
    return Rubric(
        id=draw(st.from_regex(r"[a-z0-9]{1,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)),
        version=draw(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}", fullmatch=True)),
        title=draw(HEADING),
        scale=scale,
        criteria=tuple(made),
        description=draw(paragraphs(ANYTHING, 3)),
        overall_name=overall,
        protocol=protocol,
        generation=draw(GENERATION),
        without_response=draw(scores_without_response(own_scales)),
        pass_rules=draw(comparison_lists(of_sample)),
        components=parts,
        metrics=metrics,
        gates=draw(comparison_lists(of_run)),
        bands=levels_of_quality,
        band_decimals=band_decimals,
        decisions=draw(decisions(of_run)),
        sample_decisions=draw(decisions(of_sample)),
        lexicons=shared,
        template=template,
        sections=draw(sections(has)),
    )


# Building a rubric costs more than reading it, so there are few, each with everything in it; and
# making one smaller would take minutes and say no more than the finding does.
@settings(
    max_examples=settings.default.max_examples // 2,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(rubric=rubrics())
def test_a_rendered_rubric_reads_back_as_itself_and_renders_to_the_same_text(
    rubric: Rubric,
) -> None:
    text = render_rubric(rubric)
    reading = check_rubric(text)
    assert reading.findings == ()
    assert reading.rubric == rubric
    assert render_rubric(reading.rubric) == text
