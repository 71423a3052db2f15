"""Charts: well-formed, read aloud, true to their data, and without words that overlap."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.reporting.html.charts import Distribution, Mark, room_for
from jurybox.reporting.html.html_render import environment
from jurybox.reporting.run_metrics import WHOLE, Axis, Gauge, PlottedMetric
from jurybox.rubric.metrics import Comparison
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval

CHARTS = environment().globals["charts"]
SOME = Interval(low=0.4, high=0.9, level=0.95, method="t")


def read(markup: str) -> ET.Element:
    return ET.fromstring(markup)  # noqa: S314 - our own document


def spread(*bins: tuple[float, float, int], **more: object) -> Distribution:
    n = sum(count for _, _, count in bins)
    given = {"name": "x", "label": "X", "unit": "", "n": n, "mean": 0.5, "bins": bins, **more}
    return Distribution(**given)


def scores(*counts: int, first: float = 0.0) -> Distribution:
    return spread(*((first + at, first + at, count) for at, count in enumerate(counts)))


def reach(text: ET.Element) -> tuple[float, float]:
    long, x = room_for(text.text or ""), float(text.get("x"))
    left = x - long * {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor")]
    return left, left + long


def texts(drawing: ET.Element) -> list[ET.Element]:
    return list(drawing.iter("text"))


def assert_readable(drawing: ET.Element) -> None:
    """Check that no words on one line overlap or leave the drawing."""
    wide = float(drawing.get("width"))
    lines: dict[str, list[tuple[float, float]]] = {}
    for text in texts(drawing):
        lines.setdefault(text.get("y"), []).append(reach(text))
    for spans in lines.values():
        spans.sort()
        assert spans[0][0] >= -0.01
        assert spans[-1][1] <= wide + 0.01
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start


def gate(value: float | None = 0.7, threshold: float = 0.85, **known: object) -> Gauge:
    return Gauge(
        outcome=GateOutcome(gate=f"x >= {threshold}", value=value, passed=False),
        rule=Comparison(name="x", operator=">=", number=threshold),
        metric=estimate(**known),
    )


def estimate(**more: object) -> PlottedMetric:
    given = {"name": "x", "value": 0.7, "n": 10, "interval": SOME, "reason": None, "axis": WHOLE}
    return PlottedMetric(**{**given, **more})


EVERY = [
    CHARTS.histogram(scores(1, 2, 3)),
    CHARTS.histogram(scores(0)),
    CHARTS.histogram(spread()),
    CHARTS.gauge(gate()),
    CHARTS.gauge(gate(value=None, interval=None)),
    CHARTS.whisker(estimate()),
    CHARTS.whisker(estimate(value=None, interval=None)),
    CHARTS.shares("Parts", [("a", "high", 1)], 2),
    CHARTS.shares("Nothing", [], 0),
]


@pytest.mark.parametrize("drawn", EVERY, ids=range(len(EVERY)))
def test_a_chart_can_be_read_aloud(drawn: str) -> None:
    drawing = read(drawn)
    assert drawing.get("role") == "img"
    assert [child.tag for child in drawing][:2] == ["title", "desc"]
    assert all(child.text for child in list(drawing)[:2])


@pytest.mark.parametrize("drawn", EVERY, ids=range(len(EVERY)))
def test_colors_come_from_the_style_sheet(drawn: str) -> None:
    for each in read(drawn).iter():
        assert {"style", "fill", "stroke"}.isdisjoint(each.keys())


def test_bars_are_as_high_as_their_counts() -> None:
    drawing = read(CHARTS.histogram(scores(1, 0, 4, 2)))
    heights = [float(each.get("height")) for each in drawing.iter("rect")]
    assert [height / heights[1] for height in heights] == pytest.approx([0.25, 1.0, 0.5])
    assert [text.text for text in texts(drawing) if text.get("class") == "count"] == ["1", "4", "2"]
    assert drawing.find("desc").text == "7 values, mean 0.500. 0: 1; 2: 4; 3: 2."


def test_a_count_without_room_takes_no_number_from_the_others() -> None:
    drawing = read(CHARTS.histogram(scores(*range(1, 18), 12000, 12345)))
    told = [text.text for text in texts(drawing) if text.get("class") == "count"]
    # The neighbor's number would overlap the highest one.
    assert told == [*map(str, range(1, 18)), "12.35k"]


def test_a_small_count_is_still_seen() -> None:
    heights = [
        float(each.get("height"))
        for each in read(CHARTS.histogram(scores(1, 100_000))).iter("rect")
    ]
    assert heights[0] >= 1


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=21), st.sampled_from([0.0, -10.0, 1.0]))
def test_words_never_overlap_on_a_scale_of_scores(counts: list[int], first: float) -> None:
    drawing = read(CHARTS.histogram(scores(*counts, first=first)))
    assert_readable(drawing)
    told = [text.text for text in texts(drawing) if text.get("class") == "tick"]
    assert told[-1] == str(int(first) + len(counts) - 1)


@given(
    st.integers(1, 21),
    st.floats(0.001, 1e7, allow_nan=False),
    st.lists(st.floats(0, 1), max_size=3),
)
def test_words_never_overlap_over_ranges(count: int, step: float, marks: list[float]) -> None:
    bins = [(at * step, (at + 1) * step, at * at) for at in range(count)]
    placed = tuple(
        Mark(name="p", label="p95", value=mark * count * step, n=1) for mark in sorted(marks)
    )
    drawing = read(CHARTS.histogram(spread(*bins, marks=placed, unit="ms")))
    assert_readable(drawing)
    named = [text.text for text in texts(drawing) if text.get("class") == "mark-name"]
    assert [each.split()[0] for each in named] == ["mean", *("p95" for _ in marks)]


@pytest.mark.parametrize(("mean", "at"), [(1.0, 0.0), (2.5, 1.5), (4.0, 3.0), (0.2, 0.0)])
def test_the_mean_is_a_stroke_between_the_bars_of_its_scores(mean: float, at: float) -> None:
    drawing = read(CHARTS.histogram(spread(*((n, n, 1) for n in (1.0, 2.0, 3.0, 4.0)), mean=mean)))
    middles = [float(each.get("x")) + float(each.get("width")) / 2 for each in drawing.iter("rect")]
    (stroke,) = [each for each in drawing.iter("line") if each.get("class") == "mark mean"]
    wide = middles[1] - middles[0]
    assert float(stroke.get("x1")) == pytest.approx(middles[0] + at * wide, abs=0.1)


def test_without_values_there_is_no_mean_to_draw() -> None:
    drawn = read(CHARTS.histogram(spread()))
    assert [each.get("class") for each in drawn.iter("line")] == ["axis"]


def test_a_mark_lies_where_its_value_is() -> None:
    bins = [(0.0, 10.0, 1), (10.0, 1000.0, 1)]
    drawing = read(
        CHARTS.histogram(spread(*bins, marks=(Mark(name="m", label="p50", value=505.0, n=2),)))
    )
    (mark,) = [each for each in drawing.iter("line") if each.get("class") == "mark"]
    left, right = [
        (float(each.get("x")), float(each.get("x")) + float(each.get("width")))
        for each in drawing.iter("rect")
    ]
    assert float(mark.get("x1")) == pytest.approx(sum(right) / 2, abs=0.1)
    assert left[1] < float(mark.get("x1"))


def test_a_gauge_draws_value_threshold_and_interval_to_scale() -> None:
    drawing = read(CHARTS.gauge(gate()))
    wide = float(drawing.get("width"))
    filled = next(each for each in drawing.iter("rect") if "fill" in each.get("class").split())
    assert float(filled.get("width")) == pytest.approx(0.7 * wide)
    assert "bad" in filled.get("class")
    lines = list(drawing.iter("line"))
    stroke = next(each for each in lines if each.get("class") == "threshold")
    assert float(stroke.get("x1")) == pytest.approx(0.85 * wide)
    reached = next(each for each in lines if each.get("class") == "whisker")
    assert float(reached.get("x1")) == pytest.approx(0.4 * wide)
    assert float(reached.get("x2")) == pytest.approx(0.9 * wide)
    assert "The value is 0.7, the threshold 0.85." in drawing.find("desc").text


@given(st.floats(0, 1), st.floats(1e-6, 1e9))
def test_words_never_overlap_below_a_gauge(share: float, high: float) -> None:
    axis = Axis(low=0.0, high=high, bounded=False)
    assert_readable(read(CHARTS.gauge(gate(axis=axis, threshold=round(share * high, 6)))))


def test_shares_add_up_to_the_whole() -> None:
    drawing = read(CHARTS.shares("Parts", [("a", "high", 2), ("b", "high", 6)], 8))
    _, *drawn = [float(each.get("width")) for each in drawing.iter("rect")]
    assert sum(drawn) == pytest.approx(float(drawing.get("width")))
    assert drawn[0] / drawn[1] == pytest.approx(1 / 3)
    assert drawing.find("desc").text == "Of 8: a 2, b 6."


def test_the_bar_of_a_cell_is_not_read_aloud() -> None:
    drawing = read(CHARTS.bar(0.25, WHOLE))
    assert drawing.get("aria-hidden") == "true"
    assert [float(each.get("width")) for each in drawing.iter("rect")] == [56.0, 14.0]


def test_nothing_in_a_chart_is_markup_of_others() -> None:
    hostile = "<script>\"&'</script>"
    drawn = CHARTS.histogram(spread((0, 1, 1), label=hostile))
    assert "<script" not in drawn
    assert read(drawn).find("title").text == hostile
