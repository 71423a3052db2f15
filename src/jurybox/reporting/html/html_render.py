"""Renders a page's data as HTML; of the reporting modules, only this one loads Jinja2."""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from markupsafe import Markup

from jurybox.calibration.bias_results import BiasMetric
from jurybox.documents.numbers import (
    dollars,
    exact,
    metric_change,
    metric_value,
    short,
    shown,
    written_value,
)
from jurybox.engine.records import RunRow, facets_of, in_order
from jurybox.reporting.attention import UNREMARKABLE, Attention, card
from jurybox.reporting.html.charts import HistogramLayout, px, within
from jurybox.reporting.html.histograms import WHOLE, Axis
from jurybox.reporting.html.html_text import (
    marked,
    moment,
    percent,
    prose,
    relabeled,
    seen,
    sentence,
    whole,
)
from jurybox.reporting.html.page import Extras, RunPage, run_page
from jurybox.reporting.html.panels import (
    MOST_PAIRS,
    order_metrics,
    position_of,
    unstable_pairs,
    with_lost_votes,
)
from jurybox.reporting.html.run_verdict import Verdict, verdict_of
from jurybox.reporting.judge_votes import Opinion, judge_replies, opinions_of, votes_on
from jurybox.reporting.metric_text import (
    between,
    causes_of,
    cost_of,
    gate_margin,
    gate_value,
    headline,
    metric_title,
    p_value,
    plain_words,
    ranked,
    rules_text,
)
from jurybox.reporting.reasons import dangers_of, other_reasons
from jurybox.reporting.release import REVIEW_STATES, read_reviews
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.stored import SampleRecord, plan_of, procedure_of, reading
from jurybox.reporting.view import RunView
from jurybox.review.reviews import by_number
from jurybox.review.selection import FEWEST
from jurybox.scoring.sample_result import FLAGS, NEEDS_REVIEW, flag_names
from jurybox.statistics.jury_agreement import JuryAgreement, JuryCounter
from jurybox.storage.store import Store
from jurybox.text_format import counted, cut, short_id, visible

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template

    from jurybox.reporting.side_by_side import SideBySide

_PACKAGE: Final = "jurybox.reporting.html"
_TEMPLATES: Final = "templates"
STYLE: Final = "style.css"
_SCRIPT: Final = "samples.js"


def environment(loaders: "Sequence[BaseLoader]" = ()) -> "Environment":
    """Return the template environment, which escapes all values and refuses undefined names.

    ``loaders`` take precedence over the templates in this package.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    from jurybox.reporting.html.markdown_text import harmless, rendered, unmarked

    def json(value: object) -> str:
        return msgspec.json.encode(value).decode()

    def metric(value: float | None, name: str) -> str:
        return metric_value(name, value)

    def change(value: float | None, name: str = "") -> str:
        return metric_change(name, value)

    def near(value: float) -> str:
        return metric_value("", round(value, 3) + 0.0)  # an estimate this close to zero is zero

    own = (between, change, cost_of, counted, dollars, exact, gate_margin, gate_value, json)
    own += (metric, metric_title, moment, near, p_value, percent, plain_words, prose, px, ranked)
    own += (relabeled, rendered, rules_text, seen, sentence, short, short_id, unmarked, visible)
    own += (whole, written_value)
    made = Environment(
        # For all templates, because an unescaped value is a vulnerability.
        autoescape=True,
        undefined=StrictUndefined,
        loader=ChoiceLoader([*loaders, PackageLoader(_PACKAGE, _TEMPLATES)]),
        # Invisible characters become visible in texts that no filter has processed.
        finalize=harmless,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = cast("dict[str, Any]", made.filters)
    filters |= {each.__name__: each for each in own}
    known = cast("dict[str, Any]", made.globals)
    known |= {
        "fewest": FEWEST,
        "layout": HistogramLayout,
        "from_minus_1_to_1": Axis(low=-1.0, high=1.0, bounded=True),
        "from_0_to_1": WHOLE,
        "marked": marked,
        "most_pairs": MOST_PAIRS,
        "causes_of": causes_of,
        "verdict_of": verdict_of,
        "within": within,
    }
    known["charts"] = made.get_template("charts.html").module
    return made


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return _file(STYLE)


def _file(name: str) -> str:
    path = resources.files(_PACKAGE) / _TEMPLATES / name
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash that allows an inline script or style in the page's policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def report_html(page: RunPage, packed: "PackedSamples | None" = None) -> str:
    """Return a run's page as one self-contained file."""
    inside = packed is not None and bool(packed.data)
    urls = {"sample_url": "#sample-{}".format, "list_url": "#all-samples?{}".format}
    none = dict.fromkeys(urls)
    return _whole_file("report.html", page=page, packed=packed, **urls if inside else none)


def side_by_side_html(
    compared: "SideBySide", people: Mapping[str, ReviewAgreement | None] = {}
) -> str:
    """Return several runs side by side as one self-contained file.

    ``people`` has the agreement with reviewers in each run, by the run's id.
    """

    def verdict(view: RunView) -> Verdict:
        return verdict_of(view, people.get(view.run_id))

    return _whole_file(
        "side_by_side_report.html", compared=compared, sample_url=None, verdict_of=verdict
    )


def _whole_file(template: str, **data: object) -> str:
    style, script = "\n" + style_sheet(), "\n" + _file(_SCRIPT)
    return own_template(template).render(
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=_hash(style),
        script=Markup(script),  # noqa: S704 - our own file
        script_hash=_hash(script),
        **data,
    )


@cache
def own_template(name: str) -> "Template":
    """Return a template of this package; cached, because loading takes longer than rendering."""
    return environment().get_template(name)


LARGEST: Final = 20_000_000
"""The maximum size of all samples in bytes, compressed."""
_LONGEST: Final = 20_000
_LONGEST_REASON: Final = 200
_LONGEST_READ: Final = 1000
_MOST_LAID_OUT: Final = 500  # rendering the Markdown of more would take too long
_MOST_DOTS: Final = 30
_GZIP: Final = 16 + zlib.MAX_WBITS


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples as base64 of gzipped JSON; ``data`` is empty if they would be too large.

    ``filters`` has each flag and state of review that samples can be filtered by, in words, with
    how many samples have it.
    """

    count: int
    data: str
    filters: tuple[tuple[str, str, int], ...] = ()


def packed_samples(store: Store, view: RunView, headline: str) -> PackedSamples:
    """Return all samples of a run, each with its headline score."""
    packer = zlib.compressobj(9, wbits=_GZIP)
    pieces, size, count = list[bytes](), 0, 0
    found = Counter[str]()
    with reading(view.row):
        for sample in _samples(store, view, headline):
            # `Markup` is a subclass of str
            line = msgspec.json.encode(sample, enc_hook=str)
            found.update((*sample["states"], *sample["flags"]))
            pieces.append(packer.compress((b",\n" if count else b"[") + line))
            size += len(pieces[-1])
            count += 1
            if size > LARGEST:
                return PackedSamples(count=count, data="")
    pieces.append(packer.compress(b"]" if count else b"[]") + packer.flush())
    names = REVIEW_STATES | {flag: plain_words(flag) for flag in FLAGS}
    hidden = {*UNREMARKABLE, NEEDS_REVIEW}
    return PackedSamples(
        count=count,
        data=base64.b64encode(b"".join(pieces)).decode(),
        filters=tuple(
            (name, words, found[name])
            for name, words in names.items()
            if found[name] and name not in hidden
        ),
    )


def _samples(store: Store, view: RunView, headline: str) -> Iterator[dict[str, Any]]:
    from jurybox.reporting.html.markdown_text import rendered, unmarked

    titles = {each.id: each.name for each in view.rubric.criteria}
    few = plan_of(view.row).samples <= _MOST_LAID_OUT
    procedure = procedure_of(view.row)
    reviews = by_number(read_reviews(view.row, store.reviews(view.run_id)).every)
    order = store.sorted_numbers(view.run_id, view.worst_first)
    places = {number: place for place, number in enumerate(order)}
    for row in store.samples(view.run_id):
        record = SampleRecord(row, in_order(row, store.exchanges_of(row.run_id, row.number)))
        own = reviews.get(row.number, ())
        sample, facets = card(record, view.rubric, headline, own), facets_of(row)

        def laid_out(text: str, *, swapped: bool = False) -> tuple[str, str | None]:
            left = len(text) - _LONGEST
            note = f"\n\n{counted(left, 'more character')} omitted." if left > 0 else ""
            text = text[:_LONGEST] + note
            text, html = visible(text, kept="\n\t"), rendered(text) if few else None
            return text, relabeled(html or whole(text)) if swapped else html

        flags = flag_names(facets.flags)
        texts = [("task", sample.task)]
        texts += [(f"earlier, {turn.role}", turn.content) for turn in record.inputs.messages]
        texts += [("context", record.inputs.context)] if record.inputs.context else []
        texts += [("scenario", facets.scenario)] if facets.scenario else []
        texts += [(each.label, each.error or each.text) for each in sample.answers]
        texts += [("reference", sample.reference)] if sample.reference else []
        reasons = (*dangers_of(record), *other_reasons(record, titles))
        texts += [(each.about, each.text) for each in reasons]
        if record.inputs.metadata:
            texts.append(("metadata", msgspec.json.encode(record.inputs.metadata).decode()))
        opinions = opinions_of(votes_on(procedure, record))
        yield {
            "number": sample.number,
            "place": places[sample.number],
            "id": visible(sample.id) + (f" (repeat {sample.repeat})" if sample.repeat else ""),
            "score": sample.value,
            "shown": metric_value(headline, sample.value),
            "passed": sample.passed,
            "failed": visible(sample.failed),
            "why": visible(cut(unmarked(sample.main_reason[:_LONGEST_READ]), _LONGEST_REASON)),
            "badges": [(visible(each.text), each.tone) for each in sample.badges],
            "flags": {*flags, *(("safety",) if row.number in view.release.concerned else ())},
            **view.release.of_sample(row.number, flags),
            "scenario": facets.scenario,
            "demographic": facets.demographic,
            "winner": facets.winner,
            "metrics": msgspec.Raw(facets.metrics.encode()),
            "texts": [(visible(title), *laid_out(text)) for title, text in texts],
            "criteria": [
                (
                    visible(name),
                    *result,
                    [(visible(by), *laid_out(why, swapped=swapped)) for by, why, swapped in said],
                )
                for name, *result, said in _criteria(record, opinions, titles)
            ],
            "reviews": [
                (visible(each.reviewer), visible(said), laid_out(each.comment)[0])
                for each, said in ((each, each.verdict.in_words(titles)) for each in own)
            ],
            "replies": [
                (visible(judges), laid_out(text)[0])
                for judges, text in judge_replies(record.exchanges)
            ],
        }


def _criteria(
    record: SampleRecord,
    opinions: Mapping[tuple[str, str], Sequence[Opinion]],
    titles: Mapping[str, str],
) -> Iterator[tuple[str, str, str, str, list[tuple[str, str, bool]]]]:
    """Yield each criterion with its score, its votes as HTML, its confidence, and its opinions.

    An opinion is given as the votes in words, the reasoning that they share, and whether this was
    written about swapped responses.
    """
    report = record.report
    if report is None:
        return
    dots = cast("Any", own_template("charts.html").module).vote_dots
    pair = report.method == "pairwise"

    def said(side: str, name: str, otherwise: str = "") -> list[tuple[str, str, bool]]:
        found = opinions.get((side, name), ())
        return [(each.in_words, each.reasoning, each.swapped) for each in found] or [
            ("", otherwise, False)
        ]

    if pair:
        won = dots("the better response", report.winner_votes[:_MOST_DOTS])
        yield "The better response", report.winner or "none", won, "", said("", "")
    sides = {side: scored.criteria for side, scored in (report.responses or {}).items()}
    for side, criteria in (sides or {"": report.criteria}).items():
        for each in criteria:
            given = () if report.judge_fallback else each.votes[:_MOST_DOTS]
            if report.judge_fallback:
                drawn = "none could be read; this is the fallback score"
            else:
                drawn = dots(each.id, given, None if pair else each.scale) if given else ""
            score = each.preference or ("-" if each.score is None else shown(each.score))
            name = titles.get(each.id, each.id) + (side and f" of {side}")
            why = "" if report.judge_fallback else each.reasoning
            yield name, score, drawn, each.confidence if given else "", said(side, each.id, why)


def html_report(view: RunView, attention: Attention, store: Store, more: Mapping[str, Any]) -> str:
    """Return the report on a run.

    ``more`` has the run's ``calibration``, its agreement with ``people`` and its difference from a
    ``baseline``, if known.
    """
    run, people = view.row, cast("ReviewAgreement | None", more.get("people"))
    jury, position = vote_metrics(store, view)
    extras = Extras(
        worst=attention.worst,
        baseline=cast("RunDiff | None", more.get("baseline")),
        calibration=(more["calibration"] or "") if "calibration" in more else None,
        people=people,
        jury_agreement=jury,
        with_lost_votes=with_lost_votes(store, view),
        position=position,
        unstable=unstable_pairs(store, run) if position else (),
    )
    packed = packed_samples(store, view, headline(view.summary, view.rubric))
    return report_html(run_page(view, attention.concerns, extras=extras), packed)


def vote_metrics(
    store: Store, view: RunView
) -> tuple[JuryAgreement | None, tuple[BiasMetric, ...]]:
    """Return how far the votes of a run agree, and how the order of two responses affects them."""
    known = position_of(view)
    # Responses that were scored separately have no order.
    ordered = known is not None and bool(known.n)
    return jury_agreement(store, view.row), order_metrics(store, view.row) if ordered else ()


def jury_agreement(store: Store, run: RunRow) -> JuryAgreement | None:
    """Return how far the votes on a run's samples agree, and which responses a jury prefers.

    None if no sample has several votes or two responses.
    """
    procedure = procedure_of(run)
    if not procedure.judges:
        return None
    counter = JuryCounter(procedure, plan_of(run).repeats)
    with reading(run):
        for row in store.samples(run.id):
            report = SampleRecord(row).report
            if report is not None:
                if procedure.votes <= 1 and report.method != "pairwise":
                    return None
                counter.add(report)
    return counter.agreement()
