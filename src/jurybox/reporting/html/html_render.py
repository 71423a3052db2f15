"""Renders a page's data as HTML; of the reporting modules, only this one loads Jinja2."""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import chain
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from markupsafe import Markup

from jurybox.documents.numbers import (
    count_text,
    dollars,
    exact,
    metric_change,
    metric_value,
    rounded,
    short,
    written_value,
)
from jurybox.engine.records import facets_of, in_order
from jurybox.reporting.attention import UNREMARKABLE, Attention, SamplePlace, card
from jurybox.reporting.html.charts import HistogramLayout, px, within
from jurybox.reporting.html.comparison import comparison_data
from jurybox.reporting.html.extras import (
    MOST_PAIRS,
    unstable_pairs,
    unstable_winners,
    vote_metrics,
    with_lost_votes,
)
from jurybox.reporting.html.html_text import (
    marked,
    moment,
    percent,
    prose,
    relabeled,
    seen,
    sentence,
)
from jurybox.reporting.html.page import Extras, RunPage, run_page
from jurybox.reporting.judge_votes import judge_replies, opinions_of, votes_on
from jurybox.reporting.metric_text import (
    as_clause,
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
from jurybox.reporting.release import REVIEW_STATES, asked_reasons, read_reviews
from jurybox.reporting.run_metrics import WHOLE, Axis
from jurybox.reporting.run_verdict import Verdict
from jurybox.reporting.stored import SampleRecord, numbered, plan_of, procedure_of, reading
from jurybox.reporting.view import RunView
from jurybox.review.reviews import by_number
from jurybox.review.selection import FEWEST
from jurybox.scoring.sample_result import FLAGS, NEEDS_REVIEW, flag_names
from jurybox.storage.store import Store
from jurybox.text_format import counted, short_id, verb, visible

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template

    from jurybox.reporting.run_diff import RunDiff
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
        return metric_value("", rounded(value) + 0.0)  # an estimate this close to zero is zero

    own = (as_clause, between, change, cost_of, counted, dollars, exact, gate_margin, gate_value)
    own += (harmless, json, metric, metric_title, moment, near, p_value, percent, plain_words)
    own += (prose, px, ranked, relabeled, rendered, rounded, rules_text, seen, sentence, short)
    own += (short_id, unmarked, verb, visible, written_value)
    made = Environment(
        # For all templates, because an unescaped value is a vulnerability.
        autoescape=True,
        # A package that is updated under a running server must not mix new templates with old code.
        auto_reload=False,
        undefined=StrictUndefined,
        loader=ChoiceLoader([*loaders, PackageLoader(_PACKAGE, _TEMPLATES)]),
        # Invisible characters become visible in texts that no filter has processed.
        finalize=harmless,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = cast("dict[str, Any]", made.filters)
    filters |= {each.__name__: each for each in own} | {"count": count_text, "shell": quote}
    known = cast("dict[str, Any]", made.globals)
    known |= {
        "at_store": "",  # what a command ends with; a report is read elsewhere
        "fewest": FEWEST,
        "layout": HistogramLayout,
        "from_minus_1_to_1": Axis(low=-1.0, high=1.0, bounded=True),
        "from_0_to_1": WHOLE,
        "marked": marked,
        "most_pairs": MOST_PAIRS,
        "causes_of": causes_of,
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
    inside = packed is not None
    urls = {"sample_url": "#sample-{}".format, "list_url": "#all-samples?{}".format}
    none = dict.fromkeys(urls)
    return _whole_file("report.html", page=page, packed=packed, **urls if inside else none)


MOST_COMPARED: Final = 200
"""The usual maximum number of samples in a file of compared runs."""


def side_by_side_html(compared: "SideBySide", verdicts: Sequence[Verdict]) -> str:
    """Return several runs with these verdicts side by side as one self-contained file."""
    data = {"compared": compared, "verdicts": verdicts, "sample_url": None}
    return _whole_file("side_by_side_report.html", **data)


def comparison_html(store: Store, diff: "RunDiff", verdicts: Sequence[Verdict]) -> tuple[str, int]:
    """Return two runs with these verdicts compared as one file, and how many samples it has."""
    from jurybox.reporting.side_by_side import changed_outputs

    kept = (diff.by_kind.get(kind, ()) for kind in ("same", "unscored"))
    changes = [*changed_outputs(store, diff, diff.listed_changes())]
    others = [*changed_outputs(store, diff, chain.from_iterable(kept))]
    listed = {each.number for _, shown in changes + others for each in shown.outputs[1:] if each}

    def address(place: SamplePlace) -> str:
        return f"#row-{place.number}" if place.number in listed else "#changed"

    data: dict[str, Any] = comparison_data(diff, verdicts) | dict.fromkeys(
        ("only", "written", "sample_url")
    )
    data |= {
        "changes": changes,
        "others": others,
        "listed": len(changes),
        "address": address,
        "change_url": "#kind-{}".format,
        "list_urls": (None, None),
        "shared_urls": (None, None),
        "n_query": dict[str, str]().get,  # no lists of samples
        "more": False,
    }
    return _whole_file("comparison_report.html", **data), len(listed)


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


LARGEST: Final = 150_000_000
"""The maximum size of the samples in a file, in bytes; browsers open no more in a few seconds."""
_MOST_LAID_OUT: Final = 500  # rendering the Markdown of more would take too long
_GZIP: Final = 16 + zlib.MAX_WBITS


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Samples as base64 of gzipped JSON; ``count`` of them, the worst, if all would be too large.

    ``filters`` has each flag and state of review that samples can be filtered by, in words, with
    how many samples have it.
    """

    count: int
    data: str
    filters: tuple[tuple[str, str, int], ...] = ()


def packed_samples(store: Store, view: RunView, headline: str) -> PackedSamples:
    """Return the samples of a run, the worst first, each with its headline score."""
    packer = zlib.compressobj(9, wbits=_GZIP)
    pieces, size, count = list[bytes](), 0, 0
    found = Counter[str | None]()
    with reading(view.row):
        for sample in _samples(store, view, headline):
            found.update((*sample["states"], *sample["flags"], sample["winner"]))
            line = msgspec.json.encode(sample)
            pieces.append(packer.compress((b",\n" if count else b"[") + line))
            size += len(line)
            count += 1
            if size > LARGEST:
                break
    pieces.append(packer.compress(b"]" if count else b"[]") + packer.flush())
    winners = {"A": "A wins", "B": "B wins", "tie": "tie"}
    names = REVIEW_STATES | winners | {flag: plain_words(flag) for flag in FLAGS}
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
    """Yield each sample's card, with what the sample can be found and sorted by."""
    whole_card = cast("Any", own_template("panels/cards.html").module).whole_card
    vote_dots = lru_cache(1000)(cast("Any", own_template("charts.html").module).vote_dots)
    titles = {each.id: each.name for each in view.rubric.criteria}
    plain = plan_of(view.row).samples > _MOST_LAID_OUT
    procedure, asked = procedure_of(view.row), {*asked_reasons(view.row)}
    reviews = by_number(read_reviews(view.row, store.reviews(view.run_id)).every)
    for number in list(store.sorted_numbers(view.run_id, view.worst_first)):
        row = numbered(store, view.row, number)
        record = SampleRecord(row, in_order(row, store.exchanges_of(row.run_id, number)))
        own, facets = reviews.get(number, ()), facets_of(row)
        flags = flag_names(facets.flags)
        reviewed = view.release.of_sample(number, flags)
        if asked and "open" in reviewed["states"] and not asked.intersection(reviewed["open"]):
            reviewed["states"].remove("open")  # it waits for a repaired judge
        html = whole_card(
            card(record, view.rubric, headline, own),
            record,
            reasons=(*dangers_of(record), *other_reasons(record, titles)),
            opinions=opinions_of(votes_on(procedure, record)),
            titles=titles,
            reviews=own,
            replies=list(judge_replies(record.exchanges)),
            vote_dots=vote_dots,
            plain=plain,
        )
        yield {
            "number": number,
            "flags": sorted({*flags, *(["safety"] if number in view.release.concerned else [])}),
            **reviewed,
            "scenario": facets.scenario,
            "demographic": facets.demographic,
            "winner": facets.winner,
            "metrics": msgspec.Raw(facets.metrics.encode()),
            "card": str(html),
        }


def html_report(
    view: RunView, attention: Attention, store: Store, more: Mapping[str, Any]
) -> tuple[str, int]:
    """Return the report on a run, and how many samples are in it.

    ``more`` has further parts of `Extras`, such as the run's ``calibration`` and its agreement
    with ``people``, if known.
    """
    jury, position = vote_metrics(store, view)
    known: dict[str, Any] = {**more}
    if "calibration" in more:
        known["calibration"] = more["calibration"] or ""
    extras = Extras(
        **known,
        worst=attention.worst,
        jury_agreement=jury,
        with_lost_votes=with_lost_votes(store, view),
        position=position,
        unstable=unstable_pairs(store, view.row) if position else (),
        unstable_winners=unstable_winners(store, view),
    )
    packed = packed_samples(store, view, headline(view.summary, view.rubric))
    return report_html(run_page(view, attention.concerns, extras=extras), packed), packed.count
