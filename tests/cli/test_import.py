"""``jurybox import``: files of other tools become suites that run and judgments that are read."""

import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jurybox.suite import parse_suite

JUDGE = """
import json

CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")
BIASES = ("position", "verbosity", "self_enhancement", "formatting", "authority")


def judge(prompt):
    said = {
        "reasoning": dict.fromkeys(CRITERIA, "It does what was asked."),
        "bias_checklist": dict.fromkeys(BIASES, "Nothing seen."),
        "safety_concerns": [],
    }
    if '"preferences"' in prompt:
        said |= {"preferences": dict.fromkeys(CRITERIA, "tie"), "winner": "tie"}
    else:
        said |= {"scores": dict.fromkeys(CRITERIA, 4)}
    return json.dumps(said)


def answer(prompt):
    return "brief: four" if prompt.startswith("Briefly") else "no"
"""


def write(name: str, value: object) -> str:
    Path(name).write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return name


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


CONFIG = """
description: small sums
prompts: ["Briefly: {{question}}", "file://long.txt", "{% if x %}{{question}}{% endif %}"]
providers:
  - id: openai:chat:gpt-4.1-2025-04-14
    config: {temperature: 0.2}
  - exec:./bot
defaultTest:
  assert: [{type: not-icontains, value: sorry}]
tests:
  - description: sum
    vars: {question: "2 + 2?", word: [four, vier]}
    assert:
      - {type: contains, value: "{{word}}"}
      - {type: regex, value: "^[a-z]"}
      - {type: latency, threshold: 5000}
      - {type: llm-rubric, value: Is it polite?}
      - {type: regex, value: "(?=x)"}
  - vars: {question: "JSON, please"}
    assert: [{type: is-json}, {type: cost, threshold: 0.01}, {type: llm-rubric, value: Neat?}]
"""


CONFIG_LOST = [
    "2 prompts in another file, with logic, or as chat turns: write it as a target's `prompt`",
    "3 assertions of kind `llm-rubric`: no counterpart; write a criterion",
    "2 assertions of kind `regex`: no counterpart; write a criterion",
    "1 provider `exec:./bot`: name a model or a command as `target`",
]


def test_a_promptfoo_config_becomes_rows_with_checks_and_a_target(jurybox: Callable) -> None:
    done = jurybox("import", write("config.yaml", CONFIG))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "promptfoo config: 3 rows",
        *(f"wrote config/{n}" for n in ("suite.yaml", "rows.jsonl", "rubric.md")),
        *(f"not carried over: {line}" for line in CONFIG_LOST),
        "next: jurybox run config/suite.yaml",
    ]
    first, second, third = rows("config/rows.jsonl")
    assert first["task"] == "Briefly: 2 + 2?"
    assert first["checks"] == [
        {"not_contains": "sorry", "ignore_case": True},
        {"contains": "four"},
        {"regex": "^[a-z]"},
        {"latency_e2e_ms": "<= 5000"},
    ]
    assert second["checks"][1] == {"contains": "vier"}
    assert third["checks"][1:] == [{"json": "valid"}, {"cost": "<= 0.01"}]
    assert '"temperature": 0.2' in Path("config/suite.yaml").read_text("utf-8")


def test_its_suite_runs_with_its_prompt(jurybox: Callable) -> None:
    jurybox("import", write("config.yaml", CONFIG))
    Path("config/imported_bot.py").write_text(JUDGE, "utf-8")
    done = jurybox("run", "config/suite.yaml", "--target", "python/imported_bot:answer", "--json")
    assert (done.code, done.json["planned"]) == (0, 3)
    # "brief: four" has what the first row asks for, not "vier", and is no JSON.
    assert done.json["summary"]["pass_rate"] == pytest.approx(1 / 3)


def test_each_prompt_is_a_scenario_and_each_provider_a_target(jurybox: Callable) -> None:
    config = {
        "prompts": ["On {{topic}}, {{tone}}", "{{tone}}!"],
        "providers": ["openai:gpt-4.1-2025-04-14", "anthropic:messages:claude-sonnet-4-20250514"],
        "tests": [{"vars": {"topic": "cats", "tone": "dry"}, "assert": [{"type": "is-json"}]}],
    }
    done = jurybox("import", write("two.yml", config))
    assert "not carried over" not in done.out
    assert [(row["task"], row["scenario"]) for row in rows("two/rows.jsonl")] == [
        ("On cats, dry", "prompt 1"),
        ("dry!", "prompt 2"),
    ]
    suite = parse_suite(Path("two/suite.yaml").read_bytes(), "two/suite.yaml")
    assert [target.name for target in suite.targets] == [
        "gpt-4.1-2025-04-14",
        "claude-sonnet-4-20250514",
    ]


def test_what_is_in_other_files_is_left_out_and_listed(jurybox: Callable) -> None:
    config = {
        "prompts": ["On {{text}}"],
        "providers": ["\x1b[31mred"],
        "tests": [
            {"vars": {"text": "file://long.txt"}},
            {"vars": {"text": "cats"}, "assert": [{"type": "equals", "value": "file://a.txt"}]},
            {"path": "file://more.py:tests"},
            "file://tests.csv",
        ],
    }
    done = jurybox("import", write("config.json", config))
    assert [row["task"] for row in rows("config/rows.jsonl")] == ["On cats"]
    assert done.out.splitlines()[3:-1] == [
        "not carried over: 1 test with a variable in another file: left out",
        "not carried over: 1 assertion of kind `equals`: no counterpart; write a criterion",
        "not carried over: 2 test lists in another file: import it as a dataset",
        "not carried over: 1 provider `\ufffd[31mred`: name a model or a command as `target`",
    ]


def result(number: int, output: str | None, assertions: list[dict], scores: list[float]) -> dict:
    parts = [
        {"pass": score > 0, "score": score, "reason": "", "assertion": assertion}
        for assertion, score in zip(assertions, scores, strict=True)
    ]
    return {
        "prompt": {"raw": f"Question {number}", "label": "Question {{n}}"},
        "promptIdx": 0,
        "provider": {"id": "openai:gpt-x"},
        "response": {"output": output} if output else None,
        "latencyMs": 40,
        "testCase": {"vars": {"n": number}, "assert": assertions},
        "vars": {"n": number},
        "gradingResult": {"componentResults": parts} if output else None,
    }


def test_promptfoo_results_keep_responses_and_what_a_model_graded(jurybox: Callable) -> None:
    asserts = [
        {"type": "contains", "value": "{{n}}"},
        {"type": "llm-rubric", "value": "polite"},
        {"type": "cost", "threshold": 1},
    ]
    results = [
        result(1, "It is 1.", asserts, [1, 0.5, 1]),
        result(2, "No.", asserts, [0, 1, 1]),
        result(3, None, asserts, [0, 0, 0]),
    ]
    write("out.json", {"evalId": "e", "results": {"results": results}, "config": {}})
    done = jurybox("import", "out.json", "-o", "there", "--json")
    assert done.json["format"] == "promptfoo results"
    assert done.json["not_carried_over"] == [
        "3 assertions of kind `llm-rubric`: no counterpart; write a criterion",
        "3 assertions of kind `cost`: a recorded response has no cost",
        "1 result without an output: the response is empty",
    ]
    assert rows("there/rows.jsonl")[0]["latency_e2e_ms"] == 40
    assert [(each["criterion"], each["score"]) for each in rows("there/ratings.jsonl")] == [
        ("llm-rubric: polite", 0.5),
        ("llm-rubric: polite", 1),
    ]
    done = jurybox("run", "there/suite.yaml", "--json")
    assert done.json["summary"]["pass_rate"] == pytest.approx(1 / 3)
    assert done.json["summary"]["target_errors"] == {"the response is empty": 1}
    agree = jurybox("agree", "there/ratings.jsonl", "--scale", "0-1", "--continuous")
    assert agree.code == 0


def log() -> dict[str, Any]:
    def sample(name: str, target: object, output: str, grade: str) -> dict[str, Any]:
        scores = {"includes": {"value": grade}, "graded": {"value": "C"}, "parts": {"value": {}}}
        turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": name}]
        found = {"id": name, "epoch": 1, "input": turns, "target": target, "scores": scores}
        return {**found, "output": {"completion": output}, "metadata": {"topic": "x"}}

    scorers = [{"name": "includes", "options": {}}, {"name": "graded"}]
    samples = [sample("one", "1", "It is 1.", "C"), sample("two", ["2"], "Three.", "I")]
    samples += [sample("many", ["3", "4"], "4", "C")]
    return {"version": 2, "eval": {"task": "count", "scorers": scorers}, "samples": samples}


INSPECT = [
    "3 scores of `parts` that isn't a number: left out",
    "1 row with several right answers: only the first is the reference",
    "1 scorer `graded`: write a criterion; its scores are ratings",
    "1 scorer `includes`: write a criterion; its scores are ratings",
]


def test_an_inspect_log_becomes_a_suite_and_its_scorers_raters(jurybox: Callable) -> None:
    done = jurybox("import", write("log.json", log()), "--json")
    assert sorted(done.json["not_carried_over"]) == sorted(INSPECT)
    assert done.json["commands"] == [
        "jurybox run log/suite.yaml --judge MODEL",
        "jurybox agree log/ratings.jsonl --scale 0-1",
    ]
    assert [row["response"] for row in rows("log/rows.jsonl")] == ["It is 1.", "Three.", "4"]
    agree = jurybox("agree", "log/ratings.jsonl", "--scale", "0-1", "--json")
    assert agree.json["criteria"][0]["raters"] == ["includes", "graded"]
    assert agree.json["criteria"][0]["pairs"][0]["exact"] == pytest.approx(2 / 3)


def test_a_zipped_inspect_log_is_read(jurybox: Callable) -> None:
    whole = log()
    with zipfile.ZipFile("log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, sample in enumerate(whole.pop("samples")):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(whole))
    assert jurybox("import", "log.eval").out.startswith("Inspect log: 3 rows, 6 ratings\n")


def test_a_damaged_or_bloated_zipped_log_is_refused(jurybox: Callable) -> None:
    with zipfile.ZipFile("log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t"}}))
        archive.writestr("samples/1.json", json.dumps({"id": 1, "input": "Say a.", "output": {}}))
    data = Path("log.eval").read_bytes()
    Path("short.eval").write_bytes(data[:20] + data[60:])
    with zipfile.ZipFile("bomb.eval", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("header.json", "{" + " " * 50_000_000 + "}")
    assert jurybox("import", "log.eval").code == 0
    for name in ("short.eval", "bomb.eval"):
        done = jurybox("import", name)
        assert done.code == 2
        assert done.err.startswith(f"{name}: not a complete Inspect log")


GOLDENS = [
    {"input": "2 + 2?", "actual_output": "4", "expected_output": "4", "name": "sum"},
    {"input": "Sea?", "actual_output": "Big", "expected_output": "Pacific", "context": ["A", "B"]},
    {"input": "Open", "actual_output": None, "expected_output": "x", "expected_tools": [{}]},
]


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_deepeval_goldens_are_judged(jurybox: Callable, ending: str) -> None:
    head = "input,actual_output,expected_output,name,context,expected_tools\n"
    cells = "2 + 2?,4,4,sum,,\nSea?,Big,Pacific,,A|B,\nOpen,,x,,,[{}]\n"
    done = jurybox("import", write(f"g.{ending}", GOLDENS if ending == "json" else head + cells))
    assert (done.code, done.err) == (0, "")
    assert "1 row that jurybox would refuse: the row has no `response`" in done.out
    assert "next: jurybox run g/suite.yaml --judge MODEL" in done.out
    assert rows("g/rows.jsonl")[0] == {
        "task": "2 + 2?",
        "response": "4",
        "reference": "4",
        "name": "sum",
    }
    Path("g/imported_judge.py").write_text(JUDGE, "utf-8")
    ran = jurybox(
        "run",
        "g/suite.yaml",
        "--judge",
        "python/imported_judge:judge",
        "--allow-unpinned",
        "--json",
    )
    assert (ran.json["planned"], ran.json["summary"]["unscored_votes"]) == (2, 0)


def test_alpaca_eval_preferences_are_ranked_and_judged_again(jurybox: Callable) -> None:
    def annotation(task: str, preference: float | None) -> dict[str, Any]:
        outputs = {"output_1": f"{task} one", "output_2": f"{task} two"}
        names = {"generator_1": "base", "generator_2": "new", "annotator": "judge"}
        return {"instruction": task, **outputs, **names, "preference": preference}

    found = [annotation("p", 2), annotation("q", 1), annotation("r", 1.5), annotation("s", 1.9)]
    done = jurybox(
        "import",
        write(
            "annotations.json",
            [*found, *(annotation(*each) for each in (("t", None), ("u", math.nan), ("v", -1)))],
        ),
    )
    assert "1 preference between 1 and 2: the nearer output wins" in done.out
    assert "2 preferences other than 0 and 1 to 2: the verdict has no winner" in done.out
    winners = [each["winner"] for each in rows("annotations/verdicts.jsonl")]
    assert winners == ["b", "a", "tie", "b", None, None, None]
    ranked = jurybox("rank", "annotations/verdicts.jsonl", "--json")
    assert {each["name"]: each["wins"] for each in ranked.json["models"]} == {"new": 2, "base": 1}
    Path("annotations/imported_judge.py").write_text(JUDGE, "utf-8")
    judge = ("--judge", "python/imported_judge:judge", "--allow-unpinned")
    ran = jurybox("run", "annotations/suite.yaml", *judge, "--json")
    assert ran.json["summary"]["win_rate"] == pytest.approx(0.5)
    assert jurybox("rank", "last").out.startswith("21 verdicts on 2 models")


def test_mt_bench_judgments_are_ratings_and_verdicts(jurybox: Callable) -> None:
    single = {"question_id": 81, "judge": ["j", "single-v1"], "turn": 1}
    lines = [{**single, "model": "x", "score": 8}, {**single, "model": "y", "score": -1}]
    write("single.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    done = jurybox("import", "single.jsonl")
    assert "not carried over: 2 judgments without the answers: no suite is written" in done.out
    assert "next: jurybox agree single/ratings.jsonl --scale 1-10\n" in done.out
    assert [each["score"] for each in rows("single/ratings.jsonl")] == [8, None]
    pair = {"question_id": 81, "judge": ["j", "pair-v2"], "model_1": "x", "model_2": "y"}
    games = [{"g1_winner": "model_2", "g2_winner": "tie"}, {"g1_winner": "error", "g2_winner": ""}]
    write("pair.jsonl", "".join(json.dumps({**pair, "turn": 1, **game}) + "\n" for game in games))
    jurybox("import", "pair.jsonl")
    shown = [(each["a"], each["winner"]) for each in rows("pair/verdicts.jsonl")]
    assert shown == [("x", "b"), ("y", "tie"), ("x", None), ("y", None)]
    assert jurybox("rank", "pair/verdicts.jsonl").out.startswith("2 verdicts on 2 models, 1 item")


def games(judge: str, *winners: tuple[str, str]) -> str:
    """Return MT-Bench judgments of pairs: who won the first game, and who won the second."""
    lines = [
        {"question_id": number, "judge": [judge, "pair-v2"], "model_1": "gpt-x", "model_2": "y"}
        | {"turn": 1, "g1_winner": first, "g2_winner": second}
        for number, (first, second) in enumerate(winners)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_imported_verdicts_of_both_orders_show_biases(jurybox: Callable) -> None:
    # It prefers the first place in most pairs, and the model of its own family in the others.
    place, own = ("model_1", "model_2"), ("model_1", "model_1")
    said = games("gpt-4", *[place] * 20, *[own] * 10)
    done = jurybox("import", write("judgments.jsonl", said))
    assert "next: jurybox bias judgments/verdicts.jsonl\n" in done.out
    found = jurybox("bias", "judgments/verdicts.jsonl", "--json").json
    metrics = {each["name"]: each["value"] for bias in found["biases"] for each in bias["metrics"]}
    assert metrics["position.swap_consistency"] == pytest.approx(1 / 3)
    assert metrics["position.first_place_win_rate"] == pytest.approx(5 / 6)
    assert metrics["self_preference.own_win_rate"] == pytest.approx(1)
    assert (found["judges"], found["pairs"]) == (["gpt-4"], 30)
    gated = ("bias", "judgments/verdicts.jsonl", "--gate", "position.swap_consistency >= 0.9")
    assert jurybox(*gated).code == 1
    assert jurybox("bias", "judgments/verdicts.jsonl", "--probe", "2").err.startswith(
        "judgments/verdicts.jsonl: recorded verdicts have no human labels, and no samples"
    )
    one_order = rows("judgments/verdicts.jsonl")[::2]
    write("straight.jsonl", "".join(json.dumps(line) + "\n" for line in one_order))
    refused = jurybox("bias", "straight.jsonl")
    assert (refused.code, "in both orders" in refused.err) == (2, True)


def test_imported_verdicts_of_several_judges_agree_or_not(jurybox: Callable) -> None:
    one = games("gpt-4", ("model_1", "model_1"), ("model_1", "model_2"), ("tie", "model_2"))
    other = games("claude", ("model_1", "model_1"), ("model_2", "model_2"), ("error", "error"))
    done = jurybox("import", write("two.jsonl", one + other))
    command = "jurybox agree two/ratings.jsonl --scale 0-1 --continuous"
    assert f"next: {command}\n" in done.out
    assert [each["score"] for each in rows("two/ratings.jsonl")] == [1, 0.5, 0.25, 1, 0]
    agreed = jurybox(*command.split()[1:])
    assert agreed.out.startswith("ratings  3 items, 2 raters, 5 ratings, scale 0.0-1.0")


GRADERS = {
    "name": "IT tickets",
    "data_source_config": {"type": "custom", "schema": {}},
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "Names the city",
            "input": "{{ sample.output_text }}",
            "operation": "ilike",
            "reference": "{{item.ideal}}",
        },
        {
            "type": "string_check",
            "name": "Exact",
            "input": "{{item.wanted}}",
            "operation": "eq",
            "reference": "{{sample.output_text}}",
        },
        {
            "type": "text_similarity",
            "name": "Close",
            "input": "{{sample.output_text}}",
            "reference": "{{item.ideal}}",
            "evaluation_metric": "fuzzy_match",
            "pass_threshold": 0.2,
        },
        {
            "type": "label_model",
            "name": "Polite?",
            "model": "o4-mini-2025-04-16",
            "input": [
                {"role": "developer", "content": "# Classify\n| a | b |\n| --- | --- |"},
                {
                    "role": "user",
                    "content": {"type": "input_text", "text": "{{sample.output_text}} {{item.x}}"},
                },
            ],
            "labels": ["polite", "rude"],
            "passing_labels": ["polite"],
        },
        {
            "type": "score_model",
            "name": "Grade",
            "model": "o4-mini-2025-04-16",
            "input": [{"role": "user", "content": "How near is it to {{item.ideal}}?"}],
            "range": [1, 7],
            "pass_threshold": 5,
        },
        {"type": "python", "name": "code", "source": "def grade(sample, item):\n    return 1.0"},
        {
            "type": "text_similarity",
            "name": "overlap",
            "input": "{{sample.output_text}}",
            "reference": "{{item.ideal}}",
            "evaluation_metric": "bleu",
            "pass_threshold": 0.2,
        },
    ],
}
GRADER = """
import json


def judge(request):
    assert "the response `item.x`" in request.messages[0].content
    asked = json.loads(request.schema)["properties"]
    said = {part: dict.fromkeys(asked[part]["properties"], "Seen.")
            for part in ("reasoning", "bias_checklist")}
    return json.dumps({**said, "safety_concerns": [], "scores": {"polite": 1, "grade": 6.5}})
"""


def test_openai_graders_are_checks_and_criteria(jurybox: Callable) -> None:
    done = jurybox("import", write("eval.json", GRADERS))
    nowhere = "has no counterpart; write a criterion"
    assert done.out.splitlines() == [
        "OpenAI graders: a rubric",
        "wrote eval/suite.yaml",
        "wrote eval/rubric.md",
        "not carried over: 1 grader `Polite?` that reads `item.x`: no judge sees it",
        f"not carried over: 1 grader `code`: left out, `python` {nowhere}",
        f"not carried over: 1 grader `overlap`: left out, `text_similarity` with `bleu` {nowhere}",
        "next: jurybox run eval/suite.yaml --dataset FILE",
    ]
    items = [
        {
            "item": {"question": "Capital of France?", "ideal": "Paris", "wanted": answer},
            "sample": {"output_text": answer},
        }
        for answer in ("It is PARIS", "I don't know")
    ]
    write("data.jsonl", "".join(json.dumps(each) + "\n" for each in items))
    assert jurybox("import", "data.jsonl").out.startswith("OpenAI eval items: 2 rows\n")
    ratings = write("ratings.jsonl", '{"item": "1", "rater": "anna", "score": 4}\n')
    assert "OpenAI eval items in an unknown form" in jurybox("import", ratings).err
    Path("eval/graders_judge.py").write_text(GRADER, "utf-8")
    judge = ("--judge", "python/graders_judge:judge", "--allow-unpinned")
    ran = jurybox("run", "eval/suite.yaml", "--dataset", "data/rows.jsonl", *judge, "--json")
    assert ran.json["summary"]["pass_rate"] == pytest.approx(0.5)
    jurybox("export", "last", "-o", "scores.jsonl")
    scored = [{name: row[name] for name in NAMES} for row in rows("scores.jsonl")]
    best = {"names_the_city": 1, "exact": 1, "close": 1, "polite": 1, "grade": 6.5}
    assert scored == [best, {**best, "names_the_city": 0, "close": 0}]


NAMES = ("names_the_city", "exact", "close", "polite", "grade")


def test_a_turn_with_an_image_is_listed_as_left_out(jurybox: Callable) -> None:
    words = {"type": "input_text", "text": "Rate it."}
    image = {"type": "input_image", "image_url": "https://example.com/a.png"}
    turns = [{"role": "user", "content": content} for content in (words, [words, image])]
    grader = {"type": "score_model", "name": "look", "model": "o4-mini", "input": turns}
    done = jurybox("import", write("look.json", grader))
    assert "not carried over: 1 turn of `look` with more than text: left out\n" in done.out
    assert Path("look/rubric.md").read_text("utf-8").count("Rate it.") == 1


def test_the_parts_of_a_multi_grader_are_criteria(jurybox: Callable) -> None:
    parts = {
        name: {"type": "string_check", "name": name, "operation": "like", "reference": word}
        | {"input": "{{sample.output_text}}"}
        for name, word in (("one", "1"), ("two", "2"))
    }
    multi = {"type": "multi", "name": "both", "graders": parts}
    done = jurybox("import", write("least.json", {**multi, "calculate_output": "min(one, two)"}))
    lost = "1 multi grader with `min(one, two)`: write `weights` and `pass` in the rubric"
    assert f"not carried over: {lost}\n" in done.out
    document = Path("least/rubric.md").read_text("utf-8")
    assert ("### two\n" in document, "pass:" in document) == (True, False)
    tools = {**parts["one"], "input": "{{sample.output_tools[0].function.name}}"}
    done = jurybox("import", write("tools.json", tools))
    assert done.code == 2
    assert "1 grader `one`: left out, `string_check` with `like` has no counterpart" in done.err


def test_results_of_an_openai_eval_are_ratings(jurybox: Callable) -> None:
    item = {
        "object": "eval.run.output_item",
        "datasource_item_id": 3,
        "datasource_item": {"input": "2 + 2?", "ideal": "4"},
        "results": [{"name": "exact", "passed": True, "score": 1.0}],
        "sample": {"output": [{"role": "assistant", "content": "4"}]},
    }
    done = jurybox("import", write("output.json", {"object": "list", "data": [item]}))
    assert done.out.startswith("OpenAI eval results: 1 row, 1 rating\n")
    assert rows("output/ratings.jsonl") == [{"item": "3", "rater": "exact", "score": 1.0}]
    (row,) = rows("output/rows.jsonl")
    assert (row["id"], row["response"], row["ideal"]) == ("3", "4", "4")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (
            "samples.jsonl",
            '{"input": [{"role": "user", "content": "2 + 2?"}], "ideal": ["4", "four"]}\n',
        ),
        ("items.json", {"data": [{"id": "a", "input": "2 + 2?", "expectedOutput": 4}], "meta": {}}),
        ("items.csv", 'id,input,expectedOutput\na,"{""task"": ""2 + 2?""}",4\n'),
    ],
    ids=["openai evals", "langfuse json", "langfuse csv"],
)
def test_questions_are_answered_by_a_target(jurybox: Callable, name: str, value: object) -> None:
    done = jurybox("import", write(name, value), "-o", "there")
    assert "next: jurybox run there/suite.yaml --target MODEL --judge MODEL\n" in done.out
    Path("there/imported_bot.py").write_text(JUDGE, "utf-8")
    models = (
        "--target",
        "python/imported_bot:answer",
        "--judge",
        "python/imported_bot:judge",
        "--allow-unpinned",
    )
    ran = jurybox("run", "there/suite.yaml", *models, "--json")
    assert (ran.json["planned"], ran.json["summary"]["unscored_votes"]) == (1, 0)
    assert rows("there/rows.jsonl")[0]["reference"] == "4"


def test_an_unknown_format_names_the_known_ones(jurybox: Callable) -> None:
    for name, value in (("a.json", {"rows": []}), ("a.jsonl", '{"x": 1}\n')):
        done = jurybox("import", write(name, value))
        assert done.code == 2
        assert done.err == (
            f"{name}: no known format; known formats: promptfoo results, promptfoo config,"
            " Inspect log, AlpacaEval annotations, MT-Bench judgments, OpenAI graders,"
            " OpenAI eval results, OpenAI eval items, OpenAI evals samples, Langfuse dataset,"
            " DeepEval dataset\n"
        )


def test_a_file_that_is_not_what_it_seems_is_one_line(jurybox: Callable) -> None:
    done = jurybox("import", write("log.json", {"eval": 1, "samples": [2]}))
    assert done.code == 2
    assert done.err.startswith("log.json: Inspect log in an unknown form; ")
    assert not Path("log").exists()


def test_a_large_file_is_read_and_half_a_character_refused(jurybox: Callable) -> None:
    samples = [{"input": "What? \x85" + "x" * 1_000, "ideal": "y"}] * 1_100
    Path("large.json").write_text(json.dumps(samples, ensure_ascii=False), "utf-8")
    assert "OpenAI evals samples: 1,100 rows\n" in jurybox("import", "large.json").out
    done = jurybox("import", write("half.json", [{"input": "\ud800", "ideal": "y"}]))
    assert (done.code, done.err.startswith("half.json: not valid JSON (")) == (2, True)


def test_a_transformed_output_isnt_checked_and_any_description_names_a_suite(
    jurybox: Callable,
) -> None:
    checked = [{"type": "contains", "value": "x"}, {"type": "is-json", "transform": "output.y"}]
    tests = [{"vars": {"x": "a"}, "assert": checked}]
    config = {"description": "Über 日本", "prompts": ["{{x}}"], "tests": tests}
    done = jurybox("import", write("config.json", config))
    assert "1 assertion of kind `is-json`: no counterpart" in done.out
    assert [row["checks"] for row in rows("config/rows.jsonl")] == [[{"contains": "x"}]]
    ran = jurybox("run", "config/suite.yaml", "--dry-run", "--target", "python/textwrap:dedent")
    assert ran.code == 0


def test_existing_files_are_kept(jurybox: Callable) -> None:
    write("g.json", GOLDENS)
    Path("g").mkdir()
    write("g/rows.jsonl", "mine")
    done = jurybox("import", "g.json")
    assert (done.code, done.err) == (2, "g/rows.jsonl: the file exists; choose another place\n")
    assert not Path("g/suite.yaml").exists()


def grader(**given: object) -> dict[str, object]:
    """Return a grader that a model plays."""
    asked = [{"role": "user", "content": "Grade {{sample.output_text}}"}]
    return {"type": "score_model", "name": "q", "model": "m-2025-01-01", "input": asked, **given}


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        (grader(range=[5, 1]), "`q`: left out, the scale `5.0..1.0` runs downwards"),
        (grader(pass_threshold=9), "`q`: left out, `q >= 9` asks for a value that `q` never has"),
        (
            {"type": "string_check", "name": "q", "input": "x", "reference": "y", "operation": {}},
            "`q`: left out, `string_check` has no counterpart; write a criterion",
        ),
    ],
)
def test_a_grader_that_jurybox_would_refuse_is_left_out(
    jurybox: Callable, odd: dict[str, object], problem: str
) -> None:
    done = jurybox("import", write("alone.json", odd))
    assert (done.code, problem in done.err) == (2, True)
    assert not Path("alone").exists()
    done = jurybox("import", write("two.json", {"testing_criteria": [odd, grader(name="fine")]}))
    assert f"not carried over: 1 grader {problem}\n" in done.out
    row = {"task": "t", "response": "r"}
    ran = jurybox("run", "two/suite.yaml", "--dry-run", "--dataset", write("one.jsonl", row))
    assert "OPENAI_API_KEY" in ran.err, "all else is accepted"


def test_verdicts_and_rows_that_jurybox_would_refuse_are_left_out(jurybox: Callable) -> None:
    pair = {"question_id": 1, "judge": "j", "model_1": "m", "g1_winner": "model_1"}
    lines = [json.dumps({**pair, "model_2": other}) for other in ("m", "n", "n")]
    done = jurybox("import", write("judgments.jsonl", "\n".join(lines)))
    assert "not carried over: 1 verdict left out: `m` is compared with itself\n" in done.out
    assert jurybox("rank", "judgments/verdicts.jsonl").code == 0
    items = [{"id": each, "input": each, "expectedOutput": "e"} for each in ("a", " ")]
    done = jurybox("import", write("items.json", items))
    assert "1 row that jurybox would refuse: `id` is blank" in done.out
    assert [row["task"] for row in rows("items/rows.jsonl")] == ["a"]


def test_columns_without_a_known_name_are_carried_over_with_a_hint(jurybox: Callable) -> None:
    items = [{"id": str(x), "input": {"q": "a"}, "expectedOutput": "e"} for x in range(3)]
    done = jurybox("import", write("items.json", items))
    assert "not carried over: 3 rows that jurybox would refuse: the row has no `task`" in done.out
    assert len(rows("items/rows.jsonl")) == 3


@pytest.mark.parametrize(
    ("name", "odd", "where"),
    [
        (
            "odd.jsonl",
            {"item": 5},
            "odd.jsonl: item 2: OpenAI eval items in an unknown form; correct",
        ),
        (
            "deep.json",
            {"input": "[" * 5000, "expectedOutput": "e"},
            "deep.json: item 2: Langfuse dataset in an unknown form; correct this item, or leave",
        ),
    ],
)
def test_an_odd_one_among_others_is_named(
    jurybox: Callable, name: str, odd: object, where: str
) -> None:
    fine = {"input": "1", "expectedOutput": "x"} if name == "deep.json" else {"item": {"task": "1"}}
    parts = [fine, odd, fine]
    lines = "".join(json.dumps(each) + "\n" for each in parts)
    done = jurybox("import", write(name, lines if name.endswith("l") else parts))
    assert (done.code, done.err.startswith(where)) == (2, True)
