"""``jurybox agree``: its metrics, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Jurybox = Callable[..., Any]


def lines(*rows: tuple[object, ...]) -> bytes:
    names = ("item", "rater", "score", "criterion")
    return b"".join(
        json.dumps(dict(zip(names, row, strict=False))).encode() + b"\n" for row in rows
    )


RATED = lines(
    *((i, "anna", score) for i, score in enumerate([1, 2, 3, 4, 5, 5, 4, 2, 1, 3, 4, 5])),
    *((i, "ben", score) for i, score in enumerate([1, 2, 4, 4, 5, 4, 4, 1, 1, 3, 5, 4])),
    *((i, "judge", score) for i, score in enumerate([2, 2, 3, 5, 5, 5, None, 1, 1, 2, 4, 5])),
)


def test_json_has_the_fields_that_are_promised(started: Jurybox) -> None:
    Path("ratings.jsonl").write_bytes(RATED)
    done = started("agree", "ratings.jsonl", "--scale", "1-5", "--json")
    assert (done.code, done.err) == (0, "")
    (criterion,) = done.json["criteria"]
    found: dict[str, Any] = criterion
    assert found.keys() >= {"criterion", "n_items", "raters", "alpha", "fleiss_kappa", "pairs"}
    assert found["criterion"] is None
    assert found["n_items"] == 12
    assert found["raters"] == ["anna", "ben", "judge"]
    assert set(found["alpha"]) >= {"nominal", "ordinal", "interval"}
    assert [pair["raters"] for pair in found["pairs"]] == [
        ["anna", "ben"],
        ["anna", "judge"],
        ["ben", "judge"],
    ]
    pair = found["pairs"][0]
    metrics = ["exact", "kappa", "kappa_linear", "kappa_quadratic"]
    metrics += ["spearman", "kendall", "pearson"]
    assert list(pair)[:9] == ["raters", "n", *metrics]
    assert (pair["n"], pair["exact"]) == (12, 7 / 12)
    assert set(pair["interval"]) >= set(metrics)
    assert set(pair["interval"]["kappa"]) == {"low", "high", "level", "method"}
    assert found["pairs"][1]["n"] == 11


def test_people_get_a_sentence_and_tables(jurybox: Jurybox) -> None:
    done = jurybox("agree", "-", "--scale", "1..5", "--level", "0.9", stdin=RATED)
    assert done.code == 0
    assert done.out.startswith("ratings  12 items, 3 raters, 35 ratings, scale 1-5\n")
    assert "Krippendorff's alpha (ordinal) is 0." in done.out
    assert "90% interval" in done.out
    assert "anna | ben" in done.out


def test_every_criterion_has_its_own_metrics(jurybox: Jurybox) -> None:
    rows = lines(
        *((i, rater, score, "tone") for rater in "ab" for i, score in enumerate([0, 1, 2])),
        *((i, rater, 0, "facts") for rater in "ab" for i in range(3)),
    )
    done = jurybox("agree", "-", "--scale", "0-2", "--json", stdin=rows)
    tone, facts = done.json["criteria"]
    assert (tone["criterion"], tone["pairs"][0]["kappa"]) == ("tone", 1.0)
    assert (facts["criterion"], facts["pairs"][0]["kappa"]) == ("facts", None)
    assert "every score is" in facts["pairs"][0]["reasons"]["kappa"]


@pytest.mark.parametrize("scale", ["0-1", "0.0-1.0", "0..1.5"])
def test_fractional_scores_are_fine_where_the_scale_is_continuous(
    jurybox: Jurybox, scale: str
) -> None:
    rows = lines((1, "a", 0.25), (1, "b", 0.5), (2, "a", 1), (2, "b", 0.75), (3, "a", 0.1))
    done = jurybox("agree", "-", "--scale", scale, "--continuous", "--json", stdin=rows)
    assert done.code == 0
    assert done.json["criteria"][0]["pairs"][0]["pearson"] == pytest.approx(1)


def test_csv_is_read_with_its_empty_cells_as_missing_ratings(jurybox: Jurybox) -> None:
    rows = [json.loads(line) for line in RATED.splitlines()]
    cells = [f"{r['item']},{r['rater']},{'' if r['score'] is None else r['score']}" for r in rows]
    Path("ratings.csv").write_text("\n".join(["item,rater,score", *cells]) + "\n")
    arguments = ("--scale", "1-5", "--json")
    table = jurybox("agree", "ratings.csv", *arguments)
    assert table.out == jurybox("agree", "-", *arguments, stdin=RATED).out
    Path("ratings.csv").write_text("item,rater,score\n1,anna,four\n")
    done = jurybox("agree", "ratings.csv", "--scale", "1-5")
    assert done.code == 2
    assert 'ratings.csv:2:1: `score` is the string "four"' in done.err
    assert "--scale bad,fair,good" in done.err


LABELS = ("bad", "fair", "good", "great", "superb")


def test_labels_are_scores_in_the_order_of_the_scale(jurybox: Jurybox) -> None:
    rows = RATED
    for number, label in enumerate(LABELS, start=1):
        rows = rows.replace(f'"score": {number}'.encode(), f'"score": "{label}"'.encode())
    scores = jurybox("agree", "-", "--scale", "1-5", "--json", stdin=RATED).json
    data = jurybox("agree", "-", "--scale", ", ".join(LABELS), "--json", stdin=rows).json
    assert data["criteria"] == scores["criteria"]
    assert (data["labels"], scores["labels"]) == ([*LABELS], [])
    done = jurybox("agree", "-", "--scale", ",".join(LABELS), stdin=rows)
    assert "scale 1-5 (1 bad, 2 fair, 3 good, 4 great, 5 superb)" in done.out


def test_a_label_that_the_scale_lacks_is_refused_with_those_that_it_has(jurybox: Jurybox) -> None:
    text = refusal(jurybox, lines((1, "a", "no"), (1, "b", "Yes")), "no,yes")
    assert 'standard input:2:1: `score` is the string "Yes"; give one of `no`, `yes`' in text
    for scale in ("yes,", "yes,yes"):
        assert "--scale: " in refusal(jurybox, lines((1, "a", "yes")), scale)


def clustered(*, per: int, items: int = 60) -> bytes:
    """Two raters who agree on whole conversations of ``per`` items, and differ on others."""
    rows: list[dict[str, object]] = []
    for i in range(items):
        score = 1 + (i // per) % 4
        for rater, given in (("a", score), ("b", score + (i // per) % 3 % 2)):
            chat = {"chat": i // per}
            rows.append({"item": i, "rater": rater, "score": given, "metadata": chat})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_clusters_that_say_nothing_or_two_things_are_refused(jurybox: Jurybox) -> None:
    rows = clustered(per=5)
    done = jurybox("agree", "-", "--scale", "1-5", "--cluster", "chats", stdin=rows)
    assert done.code == 2
    assert "no row has a field `chats` to cluster by" in done.err
    twice = rows.replace(b'"b", "score": 1, "meta', b'"b", "score": 1, "chat": 9, "meta', 1)
    done = jurybox("agree", "-", "--scale", "1-5", "--cluster", "chat", stdin=twice)
    assert done.code == 2
    assert "standard input:2:1: `0` has a different `chat` on line 1" in done.err


def refusal(jurybox: Jurybox, rows: bytes, scale: str = "1-5") -> str:
    done = jurybox("agree", "-", "--scale", scale, stdin=rows)
    assert (done.code, done.out) == (2, "")
    return done.err.strip()


def test_scores_off_the_scale_are_refused_with_their_lines(jurybox: Jurybox) -> None:
    said = refusal(jurybox, lines((1, "a", 7), (1, "b", 3), (2, "a", 0)))
    assert "standard input:1:1: `score` is the number 7, which is not on the scale 1-5" in said
    assert "standard input:3:1: `score` is the number 0" in said
    large = b'{"item": 1, "rater": "a", "score": 4' + b"0" * 400 + b"}\n"
    assert "`score` is a large number, which is not on the scale 1-5" in refusal(jurybox, large)


def test_fractional_scores_are_refused_where_the_scale_has_steps(jurybox: Jurybox) -> None:
    said = refusal(jurybox, lines((1, "a", 2.5), (1, "b", 3.0)))
    assert "1:1: `score` is the number 2.5, which is not on the scale 1-5" in said
    assert "--continuous" in said


def test_a_rating_given_twice_is_refused_with_both_lines(jurybox: Jurybox) -> None:
    said = refusal(jurybox, lines((1, "a", 2), (1, "b", 2), (1, "a", 3)))
    assert "standard input:3:1: `a` has already rated `1` (on line 1); keep one of the two" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (b"nope", "1:1: not valid JSON"),
        (b"[1]", "the file is a JSON list"),
        (b"7", "the line is the number 7, not an object"),
        (b'{"item": 1, "rater": "a"}', "the row has no `score`"),
        (b'{"item": 1, "rator": "a", "score": 1}', "if `rator` is meant, call it `rater`"),
        (b'{"item": 1, "rater": "a", "score": true}', "`score` is `true`"),
        (b'{"item": 1, "rater": "a", "score": "3"}', '`score` is the string "3"'),
        (b'{"item": 1, "rater": "a", "score": NaN}', "NaN is not a JSON number"),
        (b'{"item": null, "rater": "a", "score": 1}', "`item` is null"),
        (b'{"item": 1, "rater": "", "score": 1}', "`rater` is the string"),
        (b'{"item": 1, "rater": "a", "score": 1, "criterion": []}', "`criterion` is a list"),
        (b"", "there are no ratings"),
        (b'{"item": 1, "rater": "a", "score": null}', "every score is null"),
    ],
)
def test_rows_that_cannot_be_used_are_named(jurybox: Jurybox, row: bytes, said: str) -> None:
    assert said in refusal(jurybox, row + b"\n")


@pytest.mark.parametrize("scale", ["five", "5-1", "3-3", "1-5.0"])
def test_what_is_no_scale_is_refused(jurybox: Jurybox, scale: str) -> None:
    assert "--scale" in refusal(jurybox, RATED, scale)


def test_high_agreement_with_a_kappa_near_zero_is_explained(jurybox: Jurybox) -> None:
    rows = lines(
        *((i, "a", int(i == 0)) for i in range(40)), *((i, "b", int(i == 1)) for i in range(40))
    )
    done = jurybox("agree", "-", "--scale", "0-1", stdin=rows)
    assert "95% of the items have the same score, yet kappa is -0.03" in done.out
    assert "98% of the scores are 0" in done.out


def said(jurybox: Jurybox, a: list[int], b: list[int]) -> str:
    rows = lines(*((i, "a", score) for i, score in enumerate(a)))
    rows += b"\n" + lines(*((i, "b", score) for i, score in enumerate(b)))
    done = jurybox("agree", "-", "--scale", "1-5", stdin=rows)
    return next(line for line in done.out.splitlines() if line.startswith("Krippendorff's"))


def test_few_items_are_nothing_to_rely_on_however_high_alpha_is(jurybox: Jurybox) -> None:
    sentence = said(jurybox, [1, 5], [1, 5])
    assert sentence.endswith("is 1.000: too few items to rely on any value.")


def test_full_agreement_without_an_interval_is_not_called_reliable(jurybox: Jurybox) -> None:
    sentence = said(jurybox, [1, 2, 3, 4, 5] * 3, [1, 2, 3, 4, 5] * 3)
    assert "rely" not in sentence
    assert "too little variation" in sentence


def test_the_words_go_by_the_low_end_of_the_interval(jurybox: Jurybox) -> None:
    a = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 3, 3]
    b = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 5]
    assert "it may be below 0.667" in said(jurybox, a, b)
    b = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 3, 4]
    assert "high enough to rely on" in said(jurybox, a * 4, b * 4)
    assert "too low" in said(jurybox, a, [3, 1, 5, 2, 2, 4, 4, 1, 3, 1, 5, 3])
