"""Every reader of foreign text, fed with damaged input for some minutes each.

A reader may refuse what it is given, in its own words; any other exception, and any input that
takes longer than two seconds, counts as a failure and is printed. As many readers are fed at once
as there are cores.
"""

import argparse
import functools
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import resources
from pathlib import Path

from jurybox.datasets import open_dataset
from jurybox.datasets.foreign_files import read_foreign
from jurybox.datasets.ratings import RatingScale, read_ratings, read_verdicts
from jurybox.errors import JuryboxError
from jurybox.judging.formats import reply_format
from jurybox.models.model_errors import read_refusal
from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import REPLY_FORMATS
from jurybox.rubric.scale import Scale
from jurybox.suite import parse_suite

Reader = Callable[[bytes], object]
SLOWEST = 2.0
TOKENS = (
    *(b"\0", b"\xff", b"\r\n", b"---\n", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u0000", b"&a *a"),
    *(b"<<: ", b"!!python/object", b"| --- |", b"```", b"# ", b"1e999", b"NaN", b"-0", b"\\ud800"),
    *(
        "\u202e\U000e0041".encode(),
        b"scores",
        b"PAR1",
        b",",
        b"\t",
        b"0" * 400,
        b"((((",
        b"[[" * 500,
    ),
)
ROW = b'{"id": "a", "task": "t", "response": "r", "gold": {"anna": {"x": 3}}, "context": "c"}\n'
RATING = b'{"item": "1", "rater": "anna", "score": 4}\n'
PAIR = b'{"item": "1", "model_a": "x", "model_b": "y", "winner": "model_a"}\n'
SUITE = b"""suite: s
rubric: general
dataset: rows.jsonl
target: {model: openai/m-2025-01-01, prompt: "{{task}}", timeout: 5}
judge: {models: [openai/j-2025-01-01], votes: 3}
"""
# A small file of every format that `jurybox import` reads.
FOREIGN: dict[str, object] = {
    "promptfoo config": {
        "prompts": ["Say {{x}}"],
        "providers": ["openai:gpt-4.1"],
        "tests": [{"vars": {"x": "a"}, "assert": [{"type": "contains", "value": "a"}]}],
    },
    "promptfoo results": {
        "evalId": "e",
        "results": {
            "prompts": [{"raw": "Say {{x}}", "provider": "openai:gpt-4.1", "label": "p"}],
            "results": [
                {
                    "vars": {"x": "a"},
                    "promptIdx": 0,
                    "testIdx": 0,
                    "response": {"output": "a"},
                    "success": True,
                    "gradingResult": {"componentResults": [{"pass": True, "score": 1}]},
                }
            ],
        },
    },
    "Inspect log": {
        "eval": {"task": "t", "scorers": [{"name": "includes", "options": {}}]},
        "samples": [
            {
                "id": 1,
                "input": "Say a.",
                "target": "a",
                "output": {"completion": "a"},
                "scores": {"includes": {"value": "C"}},
            }
        ],
    },
    "AlpacaEval": [
        {
            "instruction": "Say a.",
            "output_1": "a",
            "output_2": "b",
            "generator_1": "x",
            "generator_2": "y",
            "annotator": "j",
            "preference": 1.0,
        }
    ],
    "MT-Bench": [
        {
            "question_id": 1,
            "judge": ["gpt-4", "pair-v2"],
            "model_1": "x",
            "model_2": "y",
            "g1_winner": "model_1",
            "g2_winner": "tie",
            "turn": 1,
        }
    ],
    "OpenAI evals": [{"input": [{"role": "user", "content": "Say a."}], "ideal": "a"}],
    "OpenAI graders": {
        "type": "multi",
        "graders": {
            "a": {
                "type": "string_check",
                "input": "{{sample.output_text}}",
                "operation": "like",
                "reference": "{{item.ideal}}",
            },
            "b": {
                "type": "label_model",
                "model": "m",
                "input": [{"role": "user", "content": "Is {{sample.output_text}} right?"}],
                "labels": ["yes", "no"],
                "passing_labels": ["yes"],
            },
            "c": {
                "type": "score_model",
                "model": "m",
                "input": [{"role": "user", "content": "Grade it."}],
                "range": [1, 7],
                "pass_threshold": 5,
            },
        },
        "calculate_output": "0.5 * a + 0.2 * b + 0.3 * c",
    },
    "Langfuse": [{"id": "1", "input": {"task": "t"}, "expectedOutput": "a", "metadata": {}}],
    "DeepEval": [
        {"input": "Say a.", "actual_output": "a", "expected_output": "a", "context": ["c"]}
    ],
}


def damaged(seeds: list[bytes], chance: random.Random) -> bytes:
    """Return one of the seeds with a few changes."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at:at] = chance.choice(TOKENS)
            case 1:
                del data[at : at + chance.randint(1, 40)]
            case 2:
                data[at:at] = data[chance.randrange(len(data) + 1) :][: chance.randint(1, 200)]
            case 3 if at < len(data):
                data[at] = chance.randrange(256)
            case _:
                data[at:at] = chance.choice(TOKENS) * chance.randint(1, 50)
    return bytes(data)


def from_file(read: Callable[[Path], object], ending: str, folder: Path) -> Reader:
    """Return a reader of bytes for one of files."""
    path = folder / f"fuzzed{ending}"

    def reader(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return reader


def rows(path: Path) -> object:
    """Read a dataset to its end."""
    return list(open_dataset(path).rows(needs_response=True))


def parquet_file(folder: Path) -> bytes:
    """Return a small Parquet file; pyarrow is a part of the development tools."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": ["a", "b"], "task": ["t", "u"], "response": ["r", "s"]})
    pq.write_table(table, folder / "seed.parquet")
    return (folder / "seed.parquet").read_bytes()


def readers(folder: Path) -> Iterator[tuple[str, Reader, list[bytes]]]:
    """Yield every reader, with input that it understands."""
    library = resources.files("jurybox.rubric") / "library"
    rubrics = [each.read_bytes() for each in library.iterdir() if each.name.endswith(".md")]
    yield "rubric", lambda data: parse_rubric(data, "fuzzed"), rubrics
    yield "suite", lambda data: parse_suite(data, "fuzzed"), [SUITE]
    lines = [ROW * 3]
    table = [b'id,task,response\r\na,t,r\r\nb,"t\nu",r\r\n']
    for ending, seeds in {
        ".jsonl": lines,
        ".csv": table,
        ".tsv": [table[0].replace(b",", b"\t")],
        ".yaml": [b"- {id: a, task: t, response: r}\n- id: b\n  task: u\n  response: s\n"],
        ".json": [b"[" + ROW.strip() + b"]"],
        ".parquet": [parquet_file(folder)],
    }.items():
        yield f"dataset {ending}", from_file(rows, ending, folder), seeds
    scale = RatingScale(scale=Scale.parse("1-5"))
    ratings = functools.partial(read_ratings, declared=scale)
    yield "ratings", from_file(ratings, ".jsonl", folder), [RATING * 3]
    yield "verdicts", from_file(read_verdicts, ".jsonl", folder), [PAIR * 3]
    yield "refusal", lambda data: read_refusal(data, "application/json", ("secret-0123456",)), lines
    general = parse_rubric((library / "general.md").read_bytes(), "general")
    checklist = parse_rubric((library / "bias-awareness.md").read_bytes(), "bias-awareness")
    for name in REPLY_FORMATS:
        form = reply_format(name)
        said = form.forge(general, checklist, "Fine.", None)
        yield f"reply {name}", from_reply(form.scores(general, checklist).read), [said.encode()]
        pair = form.preference(general, checklist)
        if pair is not None:
            said = form.forge(general, checklist, "Fine.", "A")
            yield f"reply {name}, pair", from_reply(pair.read), [said.encode()]
    imported = from_file(read_foreign, ".json", folder)
    yield "import", imported, [json.dumps(each).encode() for each in FOREIGN.values()]
    yield (
        "import .eval",
        from_file(read_foreign, ".eval", folder),
        [zipped_log(zipfile.ZIP_STORED), zipped_log(zipfile.ZIP_DEFLATED)],
    )


def from_reply(read: Callable[[str, tuple[str, ...]], object]) -> Reader:
    """Return a reader of bytes for one of replies."""
    return lambda data: read(data.decode(errors="replace"), ())


def zipped_log(compression: int) -> bytes:
    """Return an Inspect log as its `.eval` file."""
    log = json.loads(json.dumps(FOREIGN["Inspect log"]))
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(log.pop("samples")[0]))
        archive.writestr("header.json", json.dumps(log))
    return written.getvalue()


def fuzzed(name: str, seconds: float) -> str:
    """Feed a reader for so long, and return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        given = {each: (read, seeds) for each, read, seeds in readers(Path(folder))}
        return fed(name, *given[name], seconds)


def fed(name: str, read: Reader, seeds: list[bytes], seconds: float) -> str:
    """Feed a reader with damaged input, and return a row of the table."""
    chance = random.Random(name)  # noqa: S311 - nothing secret
    ends = time.monotonic() + seconds
    tried = refused = failed = 0
    slowest = 0.0
    while time.monotonic() < ends:
        data = damaged(seeds, chance)
        tried += 1
        began = time.process_time()
        try:
            read(data)
        except JuryboxError:
            refused += 1
        except Exception as error:  # noqa: BLE001 - whatever comes is what is looked for
            failed += 1
            print(f"{name}: {type(error).__name__}: {error} on {data[:300]!r}", file=sys.stderr)
        took = time.process_time() - began
        slowest = max(slowest, took)
        if took > SLOWEST:
            failed += 1
            print(f"{name}: {took:.1f} s on {data[:300]!r}", file=sys.stderr)
    return f"{name:26}{tried:>9,} inputs{refused:>9,} refused{slowest:8.2f} s{failed:>4} failures"


def main() -> int:
    """Print one row per reader; return 1 if one has failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name, *_ in readers(Path(folder))]
    with ProcessPoolExecutor() as pool:
        feed = functools.partial(fuzzed, seconds=options.minutes * 60)
        for row in pool.map(feed, names):
            failures += not row.endswith(" 0 failures")
            print(row, flush=True)
    return min(1, failures)


if __name__ == "__main__":
    sys.exit(main())
