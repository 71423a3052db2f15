"""Both stores find samples alike: filters, search, order and pages."""

# ruff: noqa: ANN401 - parts of rows and of questions are of all types

import functools
import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from jurybox.engine.records import ENCODER, Facets, SampleRow, facets_of, outcome_text
from jurybox.judging.flow import Failure, ModelReply
from jurybox.scoring.sample_result import FLAGS, SampleResult
from jurybox.storage import open_store
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store
from stores import exchange_row, review_row, run_row, sample_row

NAMES = ("tone", "depth", "a_b", "x1", "total_tokens", "win.tone")
STRANGE = ('quo"te', r"back\slash", "a.b[0]", "$", "x' OR 1=1 --", "\0")
HOSTILE = (
    "plain",
    "'; DROP TABLE facets; --",
    "100%",
    "a_b",
    "\U0001f600 \u00c9T\u00c9",
    "nul\0nul",
)
BITS = FLAGS.items()
VALUES = (None, -1e300, -2.5, -0.0, 0.0, 1e-300, 0.5, 1.0, 3.0, 3.0, 1e300)


def json(value: object) -> str:
    return ENCODER.encode(value).decode()


def made(number: int, run_id: str = "run-1", **parts: Any) -> SampleRow:
    """Return a sample with a result, inputs and responses like those of a run."""
    result = SampleResult(metrics=parts.pop("metrics", {}), **parts.pop("result", {}))
    inputs = {"id": f"s{number}", "task": "Why?", "metadata": {"secret": "hidden"}}
    inputs |= parts.pop("inputs", {})
    responses = {"response": {"text": parts.pop("text", "because")}, "response_b": None}
    if (other := parts.pop("text_b", None)) is not None:
        responses["response_b"] = {"text": other}
    columns = {"result": json(result), "inputs": json(inputs), "responses": json(responses)}
    return sample_row(number, run_id, **columns, **parts)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, patience=10)
    opened.create_run(run_row())
    opened.create_run(run_row("other"))
    yield opened
    opened.close()


def found(store: Store, **query: Any) -> list[int]:
    page = store.find_samples("run-1", SampleQuery(**query))
    assert page.total >= len(page.rows)
    return [row.number for row in page.rows]


def anything(rng: random.Random, number: int) -> SampleRow:
    pick = rng.choice
    return made(
        number,
        sample_id=f"{pick(['a', 'B', 'c'])}{number}",
        metrics={name: pick(VALUES) for name in NAMES if rng.random() < 0.9},
        result={
            "safety_flag": rng.random() < 0.2,
            "stable": pick([None, True, False]),
            "confidence": pick([None, "high", "moderate", "low"]),
            "votes_valid": pick([0, 1, 3]),
            "judged": rng.random() < 0.8,
            "needs_review": rng.random() < 0.3,
            "passed": pick([None, True, False]),
            "winner": pick([None, "A", "B", "tie"]),
            "scenario": pick([None, *HOSTILE]),
            "demographic": pick([None, "young", "old"]),
            "judge_score": pick(VALUES),
        },
        inputs={"task": pick(HOSTILE), "context": pick([None, "Some Context \u00e9"])},
        text=pick(
            ['say "yes"', "NO!", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2", "line\nbreak"]
        ),
    )


def any_query(rng: random.Random) -> SampleQuery:
    def maybe(*options: Any) -> Any:
        return rng.choice([None, None, *options])

    metric = maybe(*NAMES, "judge_score", "nobody's")
    sort = rng.choice(["number", "urgency", "id", *(f"metric:{name}" for name in NAMES)])
    return SampleQuery(
        search=maybe("yes", 'Y "', '"yes"', "CONTEXT", "\u00e9t\u00e9", "task", "%", "_b", "\0")
        or "",
        flags=tuple(rng.sample([*FLAGS], rng.choice([0, 0, 0, 1, 2]))),
        scenario=maybe(*HOSTILE),
        demographic=maybe("young"),
        winner=maybe("A", "tie", "any"),
        metric=metric,
        low=metric and maybe(-2.5, 0.0, -0.0, 1e-300),
        high=metric and maybe(0.0, 1.0, 3.0),
        above=metric and maybe(-2.5, 0.0),
        below=metric and maybe(1.0, 3.0),
        sort=sort,
        descending=rng.random() < 0.5,
        queued=rng.random() < 0.2,
        missing_first=rng.random() < 0.3,
        concerned=tuple(rng.sample(range(1000), rng.choice([0, 200]))),
        settled=tuple(rng.sample(range(1000), rng.choice([0, 200]))),
        offset=rng.choice([0, 0, 0, 3, 40]),
        limit=rng.choice([1, 7, 1000]),
    )


def plainly(samples: list[SampleRow], query: SampleQuery) -> tuple[list[int], int]:
    """Answer a question the simple way."""
    kept = [row for row in samples if holds(row, query)]
    kept.sort(key=lambda row: row.number)
    metric = query.sort.removeprefix("metric:")
    order: dict[str, Any] = {
        "number": lambda row: row.number,
        "urgency": lambda row: urgency_of(row, query),
        "id": lambda row: row.sample_id,
    }
    if query.sort in order:
        if query.sort == "urgency":
            kept.sort(key=losses)
        kept.sort(key=order[query.sort], reverse=query.descending)
    else:
        if query.missing_first:
            kept.sort(key=lambda row: (-known(row).urgency, losses(row)))
        having = [row for row in kept if metric in metrics_of(row)]
        having.sort(key=lambda row: metrics_of(row)[metric], reverse=query.descending)
        without = [row for row in kept if metric not in metrics_of(row)]
        kept = without + having if query.missing_first else having + without
        if query.missing_first:
            kept.sort(key=lambda row: row.number not in query.concerned)
    page = kept[query.offset : query.offset + query.limit]
    return [row.number for row in page], len(kept)


def losses(row: SampleRow) -> int:
    return {"B": 0, "tie": 1}.get(str(known(row).winner), 2)


def urgency_of(row: SampleRow, query: SampleQuery) -> int:
    if row.number in query.concerned:
        return 9
    return 0 if row.number in query.settled else known(row).urgency


def flags_of(facets: Facets, query: SampleQuery) -> int:
    return facets.flags | (FLAGS["safety"] if facets.number in query.concerned else 0)


# Each is asked of every sample for every question.
known = functools.cache(facets_of)


@functools.cache
def metrics_of(row: SampleRow) -> dict[str, float]:
    return msgspec.json.decode(known(row).metrics)


@functools.cache
def result_of(row: SampleRow) -> SampleResult:
    return msgspec.json.decode(row.result, type=SampleResult)


@functools.cache
def words_of(row: SampleRow) -> list[str]:
    inputs, responses = msgspec.json.decode(row.inputs), msgspec.json.decode(row.responses)
    texts = [row.sample_id, inputs["task"], inputs.get("context"), responses["response"]["text"]]
    return [text.casefold() for text in texts if text]


def holds(row: SampleRow, query: SampleQuery) -> bool:
    metrics, result, facets = metrics_of(row), result_of(row), known(row)
    wanted = query.search.casefold()
    return (
        (not wanted or any(wanted in words for words in words_of(row)))
        and all(flags_of(facets, query) & FLAGS[name] for name in query.flags)
        and query.scenario in {None, result.scenario}
        and query.demographic in {None, result.demographic}
        and query.winner in {None, result.winner, "any" if result.winner else None}
        and (query.metric is None or query.metric in metrics)
        and (query.low is None or metrics[str(query.metric)] >= query.low)
        and (query.high is None or metrics[str(query.metric)] <= query.high)
        and (query.above is None or metrics[str(query.metric)] > query.above)
        and (query.below is None or metrics[str(query.metric)] < query.below)
        and (not query.queued or facets.urgency > 0)
    )


def test_a_store_finds_what_looking_at_every_sample_finds(store: Store) -> None:
    rng = random.Random(1)  # noqa: S311 - the same every time
    samples = [anything(rng, number) for number in rng.sample(range(1000), 150)]
    store.append(samples, [])
    store.append([made(number, "other") for number in range(20)], [])
    answered = 0
    for _ in range(150):
        query = any_query(rng)
        page = store.find_samples("run-1", query)
        assert ([row.number for row in page.rows], page.total) == plainly(samples, query), query
        whole = plainly(samples, msgspec.structs.replace(query, offset=0, limit=1000))[0]
        every = [known(row) for row in samples if row.number in whole]
        counts = {name: sum(flags_of(row, query) & bit > 0 for row in every) for name, bit in BITS}
        assert page.flags == {name: count for name, count in counts.items() if count}, query
        if not query.search:
            assert [*store.sorted_numbers("run-1", query)] == whole, query
        answered += bool(page.rows)
    assert answered > 30


def test_what_is_found_are_the_facets_of_the_samples(store: Store) -> None:
    rng = random.Random(3)  # noqa: S311 - the same every time
    samples = [anything(rng, number) for number in range(700)]
    store.append(samples, [])
    page = store.find_samples("run-1", SampleQuery(limit=1000))
    assert page.rows == tuple(map(facets_of, samples)) == tuple(store.facets("run-1"))
    assert list(store.facets("run-1", range(3, 5))) == [facets_of(row) for row in samples[3:5]]


def test_pages_have_each_sample_once_whatever_is_equal(store: Store) -> None:
    store.append([made(n, metrics={"tone": n % 3 or None}) for n in range(100)], [])
    sorts = ("number", "urgency", "id", "metric:tone", "metric:nobody's")
    for sort, down, search in itertools.product(sorts, (False, True), ("", "e")):
        query = {"sort": sort, "descending": down, "search": search}
        numbers = [
            number
            for offset in range(0, 112, 7)
            for number in found(store, **query, offset=offset, limit=7)
        ]
        assert sorted(numbers) == list(range(100)), query
        if sort == "metric:tone":
            assert numbers[-34:] == list(range(0, 100, 3)), query


def test_a_deep_page_goes_on_where_the_one_before_ended(store: Store) -> None:
    for start in range(0, 5200, 400):
        batch = range(start, start + 400)
        store.append([made(n, metrics={"tone": n * 7919 % 5200}) for n in batch], [])
    expected = sorted(range(5200), key=lambda n: n * 7919 % 5200)
    for offset in (4990, 5000, 5001, 5190):
        assert found(store, sort="metric:tone", offset=offset, limit=20) == expected[offset:][:20]


TEXTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "id": lambda word: {"sample_id": f"{word.title()}-1"},
    "task": lambda word: {"inputs": {"task": f"a {word} here"}},
    "context": lambda word: {"inputs": {"context": word.upper()}},
    "reference": lambda word: {"inputs": {"reference": f"x {word}"}},
    "messages": lambda word: {"inputs": {"messages": [{"role": "user", "content": word.title()}]}},
    "scenario": lambda word: {"inputs": {"scenario": word}},
    "metadata": lambda word: {"inputs": {"metadata": {"a": [1, {"b": f"the {word}"}]}}},
    "name in metadata": lambda word: {"inputs": {"metadata": {word: 1}}},
    "response": lambda word: {"text": f"the {word}"},
    "second response": lambda word: {"text_b": f"the {word}"},
}


# The other is also the name of a field, and so looked for in another way.
@pytest.mark.parametrize("word", ["needle", "context"])
def test_a_text_is_found_wherever_people_would_look_for_it(store: Store, word: str) -> None:
    places = enumerate(TEXTS.values(), 1)
    rows = [made(number, **place(f"{word}{number:02}")) for number, place in places]
    store.append([made(0), *rows], [])
    for number, where in enumerate(TEXTS, 1):
        assert found(store, search=f"{word[:3]}{word[3:].upper()}{number:02}") == [number], where
    assert found(store, search=word.upper()) == list(range(1, len(rows) + 1))


def test_names_of_fields_arent_searched(store: Store) -> None:
    words = ("task", "metadata", "text", "response", '":"', "null", "user")
    turns = {"inputs": {"messages": [{"role": "user", "content": "And?"}]}}
    rows = [made(number, text=f"about {word}") for number, word in enumerate(words, 1)]
    store.append([made(0, **turns), *rows], [])
    for number, word in enumerate(words, 1):
        assert found(store, search=word) == [number]


REPLIES: list[tuple[str, str, list[int]]] = [
    ('{"reasoning": {"tone": "A Needle\\nhere, \\"so\\""}}', "needle", [1]),
    ('{"reasoning": "A \\"quote\\""}', 'a "QUOTE"', [1]),
    ("no JSON: \nneedle", "JSON: \nneedle", [1]),
    ('{"why": "\\u00fcber"}', "\u00dcBER", [1]),
    ("plain \u00fcber", "\u00dcBER", [1]),
    ('","usage":{"x', '","usage":{"x', [1]),
    ("a reply", "cached", []),
    ("a reply", "gpt-9", []),
]


@pytest.mark.parametrize(("reply", "wanted", "where"), REPLIES)
def test_judges_replies_are_searched_without_what_is_stored_beside_them(
    store: Store, reply: str, wanted: str, where: list[int]
) -> None:
    outcomes = [outcome_text(ModelReply(text=text, model="gpt-9")) for text in ("4", reply)]
    outcomes += [outcome_text(Failure(kind="refused", message=f"{reply} {wanted}"))]
    rows = [exchange_row(number, outcome=each) for number, each in enumerate(outcomes)]
    others = [exchange_row(3, role="target", outcome=outcomes[1])]
    store.append([made(number) for number in range(4)], [*rows, *others])
    assert found(store, search=wanted) == where
    assert found(store, search=wanted, flags=("safety",)) == []
    assert found(store, search="S1", matching="[2, 3]") == [2, 3]


@pytest.mark.parametrize("wanted", ["unclear", "ADA", "\u00dcBER"])
def test_reviews_are_searched(store: Store, wanted: str) -> None:
    samples = [made(0), made(1)]
    store.append(samples, [])
    store.add_review(review_row("one", samples[1], comment="Unclear \u00fcber", reviewer="Ada"))
    assert found(store, search=wanted) == [1]


def test_every_sign_of_a_text_stands_for_itself(store: Store) -> None:
    texts = [
        'quo"te',
        "back\\slash",
        "new\nline",
        "\t",
        "100%",
        "a_b",
        "!",
        "\x01",
        "a\0b",
        "\u2028",
    ]
    rows = [made(number, text=f"<{text}>") for number, text in enumerate(texts)]
    store.append([*rows, made(98, text="100x aXb"), made(99, text="\\n")], [])
    for number, text in enumerate(texts):
        assert found(store, search=text) == [number], text


def test_letters_of_all_scripts_are_found_without_regard_to_case(store: Store) -> None:
    texts = [
        "\u00dcBER",
        "\u041f\u0440\u0438\u0432\u0435\u0442",
        "STRASSE \u00e9",
        "\u039f\u0394\u039f\u03a3",
    ]
    store.append([made(number, text=text) for number, text in enumerate(texts)], [])
    assert found(store, search="\u00fcber") == [0]
    assert found(store, search="\u043f\u0420\u0418") == [1]
    assert found(store, search="stra\u00dfe") == [2]
    assert found(store, search="\u03bf\u03b4\u03bf\u03c2") == [3]


@pytest.mark.parametrize("text", ["\ud800", "\0"])
def test_what_cant_be_stored_is_found_nowhere(store: Store, text: str) -> None:
    store.append([made(0)], [])
    for query in ({"search": text}, {"scenario": text}, {"winner": text}, {"metric": text}):
        assert found(store, **query) == []
    assert store.find_samples(text, SampleQuery()).total == 0
    assert store.find_sample("run-1", text) is None
    assert found(store, sort=f"metric:{text}") == [0]


def test_a_sample_whose_texts_or_result_cant_be_read_is_still_found(store: Store) -> None:
    store.append([sample_row(0, inputs="[", responses="no", result="{")], [])
    assert found(store, search="s0") == [0]
    assert found(store, sort="metric:tone") == [0]


def test_a_page_beyond_the_last_is_empty_and_still_knows_how_many_there_are(store: Store) -> None:
    store.append([made(0), made(1)], [])
    for offset in (2, 10**6, 2**62):
        page = store.find_samples("run-1", SampleQuery(offset=offset))
        assert (page.rows, page.total) == ((), 2)


def test_a_sample_is_found_by_its_id_in_the_repeat_that_is_meant(store: Store) -> None:
    rows = [made(n, sample_id="same", repeat=repeat) for n, repeat in ((4, 1), (2, 0), (6, 2))]
    store.append([*rows, made(0, "other", sample_id="same")], [])
    first, second = rows[1], rows[0]
    assert store.find_sample("run-1", "same") == first
    assert store.find_sample("run-1", "same", 1) == second
    assert store.find_sample("run-1", "same", 3) is None
    assert store.find_sample("run-1", "SAME") is None


def test_groups_are_those_of_the_run_in_order_and_not_without_end(store: Store) -> None:
    labels = [None, "b", "a", "b", "\u00e9", "Z", ""]
    results = [{"scenario": each, "demographic": "d" if each else None} for each in labels]
    store.append([made(n, result=each) for n, each in enumerate(results)], [])
    store.append([made(n, "other", result={"scenario": f"{n:04}"}) for n in range(300)], [])
    groups = store.groups("run-1")
    assert groups.scenarios == ("", "Z", "a", "b", "\u00e9")
    assert groups.demographics == ("d",)
    assert store.groups("other").scenarios == tuple(f"{n:04}" for n in range(200))
    assert store.groups("nobody's").scenarios == ()


def test_matching_groups_are_those_of_samples_that_match_everything_else(store: Store) -> None:
    groups = [("b", "d"), ("a", "d"), ("a", "e"), (None, "f")]
    for number, (scenario, demographic) in enumerate(groups):
        result = {"scenario": scenario, "demographic": demographic}
        store.append([made(number, result=result)], [])

    def of(**query: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = store.groups("run-1", SampleQuery(**query))
        return found.scenarios, found.demographics

    assert of() == (("a", "b"), ("d", "e", "f"))
    assert of(scenario="a") == (("a", "b"), ("d", "e"))
    assert of(scenario="a", demographic="d") == (("a", "b"), ("d", "e"))
    assert of(demographic="e") == (("a",), ("d", "e", "f"))
    assert of(among=(2, 3)) == (("a",), ("e", "f"))
    assert of(among=()) == ((), ())


def test_a_long_scenario_finds_its_samples(store: Store) -> None:
    long = "x" * 1_000_000
    store.append([made(0, result={"scenario": long}), made(1)], [])
    assert found(store, scenario=long) == [0]
    assert found(store, scenario=store.groups("run-1").scenarios[0]) == [0]


def test_results_of_some_samples_only(store: Store) -> None:
    rows = [made(number) for number in range(10)]
    store.append(rows, [])
    expected = [(row.number, row.repeat, row.record_sha256, row.result) for row in rows]
    assert list(store.results("run-1", range(3, 6))) == expected[3:6]
    assert list(store.results("run-1")) == expected


def test_facets_are_stored_with_the_samples_or_not_at_all(store: Store) -> None:
    store.append([made(0)], [])
    with pytest.raises(Exception, match="already stored"):
        store.append([made(1), made(0)], [])
    assert found(store) == [0]


def test_looking_through_many_texts_takes_no_memory(store: Store) -> None:
    for start in range(0, 600, 100):
        store.append([made(n, text="x" * 20_000) for n in range(start, start + 100)], [])
    found(store, search="y")
    tracemalloc.start()
    try:
        assert found(store, search="xx", limit=1) == [0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000


def test_a_name_that_no_document_can_give_is_of_no_metric(store: Store) -> None:
    store.append([made(0, metrics={"tone": 1.0}), made(1, metrics={"tone": 2.0})], [])
    for name in STRANGE:
        assert found(store, metric=name, low=0.0) == []
        assert found(store, sort=f"metric:{name}") == [0, 1]


def test_flags_are_counted_among_the_samples_that_are_asked_for(store: Store) -> None:
    good, alarming = {"passed": True}, {"passed": True, "safety_flag": True}
    store.append([made(0), made(1, result=alarming), made(2, result=good)], ())
    alarmed = {"safety": 1, "passed": 1}
    assert store.find_samples("run-1", SampleQuery()).flags == {"safety": 1, "passed": 2}
    assert store.find_samples("run-1", SampleQuery(flags=("safety",))).flags == alarmed
    assert store.find_samples("run-1", SampleQuery(search="s1")).flags == alarmed
    assert store.find_samples("other", SampleQuery()).flags == {}


def test_samples_that_another_run_has_too_are_found_by_id_and_repeat(store: Store) -> None:
    store.append([made(number, sample_id=name) for number, name in enumerate("abc")], [])
    others = [made(0, "other", sample_id="c"), made(1, "other", sample_id="a", repeat=1)]
    store.append([*others, made(2, "other", sample_id="b")], [])
    for descending, expected in ((False, ["b", "c"]), (True, ["c", "b"])):
        found = store.find_samples("run-1", SampleQuery(also_in="other", descending=descending))
        assert [row.sample_id for row in found.rows] == expected
        assert found.total == 2
    assert store.find_samples("run-1", SampleQuery(also_in="none")).total == 0
