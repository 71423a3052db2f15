"""``hf://OWNER/NAME/SPLIT``: datasets of the Hugging Face hub, by its own client (D5, A11)."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from lazily import Lazily

pa = Lazily("pyarrow")
pq = Lazily("pyarrow.parquet")

FIRST, SECOND = "1" * 40, "2" * 40
SUITE = """suite: hub
rubric: companion
dataset: {dataset}
columns: {{task: asked, response: said}}
"""


def table(*names: str) -> bytes:
    written = io.BytesIO()
    rows = {"asked": [f"I feel {name}." for name in names], "said": ["I'm sorry."] * len(names)}
    pq.write_table(pa.table(rows), written)
    return written.getvalue()


class FakeHub:
    """Answers what the client asks of the hub about the datasets `org/chats` and `org/lines`."""

    def __init__(self) -> None:
        self.main = FIRST
        self.asked: list[str] = []
        self.files = {
            "README.md": b"# Chats",
            "data/train-00000-of-00002.parquet": table("low", "sad"),
            "data/train-00001-of-00002.parquet": table("alone"),
            "data/test-00000-of-00001.parquet": table("fine"),
        }
        self.converted = {"default/train/0000.parquet": table("converted")}

    def of(self, path: str) -> dict[str, bytes]:
        if "org/chats" in path:
            return self.files
        return self.converted if "refs/convert" in path or SECOND in path else {"rows.txt": b"x"}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, *, body: bool) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append(path)
                data: bytes | None = None
                if path.startswith(("/api/datasets/org/chats", "/api/datasets/org/lines")):
                    files = [{"rfilename": name} for name in hub.of(path)]
                    sha = SECOND if "refs/convert" in path else hub.main
                    data = json.dumps({"id": "org/x", "sha": sha, "siblings": files}).encode()
                elif "/resolve/" in path:
                    data = hub.of(path).get(path.partition("/resolve/")[2].partition("/")[2])
                self.send_response(200 if data is not None else 404)
                self.send_header("ETag", '"' + str(hash(data)) + '"')
                self.send_header("X-Repo-Commit", path.partition("/resolve/")[2][:40] or hub.main)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                if body:
                    self.wfile.write(data or b"")

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    fake = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), fake.handler())
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("HF_HOME", str(Path.cwd() / "hub"))
    yield fake
    server.shutdown()
    server.server_close()


def write_suite(dataset: str) -> str:
    Path("hub.yaml").write_text(SUITE.format(dataset=dataset), "utf-8")
    return "hub.yaml"


def test_all_files_of_a_split_are_one_dataset_at_a_recorded_revision(
    started: Callable, jurybox: Callable, hub: FakeHub
) -> None:
    done = started("run", write_suite("hf://org/chats/train"), "--json")
    assert done.json["planned"] == 3, done.err
    assert done.json["metadata"]["dataset_id"] == f"hf://org/chats/train@{FIRST}"
    shown = jurybox("show", "last", "--sample", "3", "--json").json
    assert (shown["task"], shown["response"]) == ("I feel alone.", "I'm sorry.")
    # Pinned by its commit, the same bytes have the same hash, whatever is newest.
    hub.main = SECOND
    again = started("run", "hub.yaml", "--dataset", f"hf://org/chats/train@{FIRST}", "--json")
    key = "dataset_version_or_hash"
    assert again.json["metadata"][key] == done.json["metadata"][key]
    assert any(path.endswith(f"/revision/{FIRST}") for path in hub.asked)


BOT = """
import os


def answer(prompt):
    if "sad" in prompt and not os.path.exists("well"):
        os._exit(9)
    return "I'm sorry to hear that."
"""


def test_a_killed_run_is_resumed_without_the_hub(started: Callable, hub: FakeHub) -> None:
    Path("hub_bot.py").write_text(BOT, "utf-8")
    target = ("--target", "python/hub_bot:answer", "--concurrency", "1")
    assert started("run", write_suite("hf://org/chats/train"), *target).code == 9
    Path("well").touch()
    hub.files.clear()
    asked = len(hub.asked)
    done = started("resume", "last", "--json")
    assert (done.json["status"], done.json["summary"]["samples"]) == ("finished", 3), done.err
    assert len(hub.asked) == asked


def test_a_dataset_without_parquet_is_taken_as_the_hub_converted_it(
    started: Callable, hub: FakeHub
) -> None:
    done = started("run", write_suite("hf://org/lines"), "--json")
    assert done.json["metadata"]["dataset_id"] == f"hf://org/lines/train@{SECOND}", done.err
    assert hub.main == FIRST


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        ("org/chats", "the dataset has several splits; add one of `test`,"),
        ("org/chats/dev", "there is no split `dev`; add one of `test`,"),
        ("org/none/train", "the hub refused it ("),
    ],
)
@pytest.mark.usefixtures("hub")
def test_what_the_hub_has_not_is_named(started: Callable, dataset: str, problem: str) -> None:
    done = started("run", write_suite(f"hf://{dataset}"))
    assert done.code == 2
    assert done.err.startswith(f"hf://{dataset}: {problem}")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("dataset", ["org/../chats", "-org/chats", "chats"])
def test_a_name_that_no_dataset_can_have_is_refused(jurybox: Callable, dataset: str) -> None:
    done = jurybox("run", write_suite(f"hf://{dataset}"))
    assert done.code == 2
    problem = "it names no dataset; write `hf://OWNER/NAME/SPLIT`"
    assert done.err.startswith(f"hf://{dataset}: {problem}")
    assert done.err.count("\n") == 1


def test_an_unreachable_hub_leaves_the_work_undone(started: Callable) -> None:
    # Nobody listens at port 9, and the client's own attempts end soon.
    environment = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(Path.cwd() / "hub")}
    done = started("run", write_suite("hf://org/chats/train"), **environment)
    assert done.code == 3
    assert "hf://org/chats/train: the hub can't be reached (" in done.err
