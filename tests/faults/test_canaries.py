"""Keys that an endpoint repeats in every way it can: they reach nothing that is stored or shown."""

import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from commands import JURYBOX, call
from judge_server import general_verdict
from jurybox.wiring import open_run_store
from pages_client import pages_of

JUDGE_KEY = "kanari-judge/Zq8+Lw3Vx0Tn5Rb7Yp2"
TARGET_KEY = "kanari-target-Hd4Kc9Mf6Js1Ug3"
PASSWORD = "kanari-password-Ev5Ob8Ia2Xs"  # noqa: S105 - of nobody
SECRETS = (JUDGE_KEY, TARGET_KEY, PASSWORD)
PARTS = {secret[at : at + 12] for secret in SECRETS for at in range(len(secret) - 11)}
SAMPLES = 42
SUITE = """\
suite: canaries
rubric: general
dataset: rows.jsonl
target:
  model: openai/target-2025-01-01
  prompt: "{{task}}"
  api_key_env: KANARI
judge:
  models: [openai/judge-2025-01-01]
  votes: 2
"""


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


def disguised(said: str, key: str, turn: int) -> object:
    """Return a content in which the key is whole only when its parts are joined, or it is read."""
    if turn == 14:
        return [{"type": "text", "text": said[at : at + 9]} for at in range(0, len(said), 9)]
    return said.replace(key, escaped(key)) if turn == 15 else said


class Parrot(BaseHTTPRequestHandler):
    """Repeats the key it was sent, every time in another way."""

    protocol_version = "HTTP/1.1"
    turns = itertools.count()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent = self.headers["Authorization"] or ""
        key = next((each for each in SECRETS if each in sent), PASSWORD)
        turn = next(self.turns) % 17
        verdict = general_verdict(request, 0).replace("Because", f"Your key is {key}, {{}}")
        parts = f"{key[:14]}... and ...{key[-13:]}, x{key[3:16]}x"
        said = verdict.replace("{}", parts if turn == 1 else "because")
        if turn == 2:
            said = f"I am not a judge, but I know {key}."
        content = disguised(said, key, turn)
        message = {"role": "assistant", "content": content, "reasoning_content": key}
        data = {"id": key, "model": request["model"], "choices": [{"message": message}]}
        body, status = json.dumps(data), 200
        if turn == 3:
            body = json.dumps({**data, "model": f"judge {key}", "system_fingerprint": key})
        elif turn == 4:
            choice = {"message": message, "finish_reason": key}
            body = json.dumps({**data, "choices": [choice]})
        elif turn == 5:
            body = body.replace(key, escaped(key)).replace(json.dumps(key)[1:-1], escaped(key))
        elif turn == 6:
            body = body.replace("/", "\\/").replace("+", "\\u002B")
        elif 6 < turn < 14:
            status = (500, 429, 400, 302, 200, 403, 529)[turn - 7]
            error = {"message": f"{key} {parts}", "code": key, "param": key, "type": parts}
            body = json.dumps({"error": error}) if turn % 2 else f"<p>{key}</p>"
        self.send_response(status, f"No {key}")
        for name in ("X-Request-Id", "Set-Cookie", "Location", "WWW-Authenticate", "Server"):
            self.send_header(name, f"http://127.0.0.1/{quote(key, safe='/+')}")
        self.send_header("Retry-After", "0")
        kind = f"text/html; of={key}" if turn == 16 else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def parrot() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


class Sinks:
    """Everything that was seen, and in which of it there is a part of a secret."""

    def __init__(self) -> None:
        self.seen: dict[str, bytes] = {}

    def start(self, *arguments: str, key: str = JUDGE_KEY) -> int:
        """Run a command as a user does, and watch the command lines of all processes."""
        keys = {"OPENAI_API_KEY": key, "KANARI": TARGET_KEY, "JURYBOX_PATIENCE": "1"}
        environment = {**os.environ, **keys, "PYTHONDEVMODE": "1", "RUST_LOG": "trace"}
        with (
            Path("out.txt").open("wb") as out,
            Path("err.txt").open("wb") as err,
            subprocess.Popen(
                [JURYBOX, *arguments], stdout=out, stderr=err, env=environment
            ) as child,
        ):
            while child.poll() is None:
                for each in Path("/proc").glob("[0-9]*/cmdline"):
                    self.seen.setdefault("process list", b"")
                    self.seen["process list"] += _read(each)
                time.sleep(0.2)
        for name in ("out.txt", "err.txt"):
            self.seen[f"{name} of {' '.join(arguments[:2])}"] = Path(name).read_bytes()
        return child.returncode

    def look_at_files(self) -> None:
        for path in Path().rglob("*"):
            if path.is_file() and path.name != "suite.yaml":
                self.seen[str(path)] = path.read_bytes()

    def found(self) -> dict[str, set[str]]:
        found = {
            name: {part for part in PARTS if part.encode() in data}
            for name, data in self.seen.items()
        }
        return {name: parts for name, parts in found.items() if parts}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_no_part_of_a_key_that_an_endpoint_repeats_is_stored_or_shown(
    parrot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": f"q{number}", "task": f"Add {number}."} for number in range(SAMPLES)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(SUITE)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://{parrot}")
    sinks = Sinks()
    assert sinks.start("run", "suite.yaml", "--allow-unpinned", "--json") in {0, 1, 3}
    sinks.look_at_files()
    # With a password in the address, in the place of a key.
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{PASSWORD}@{parrot}")
    Path("suite.yaml").write_text(SUITE.replace("  api_key_env: KANARI\n", ""))
    code = sinks.start("run", "suite.yaml", "--allow-unpinned", "--limit", "14", key="")
    assert code in {0, 1, 3}, Path("err.txt").read_text()
    store = open_run_store()
    runs = store.runs()
    assert len(runs) == 2
    stored = next(iter(store.samples(runs[0].id))).sample_id
    verbs = ["runs", "doctor", "show last", f"show last --sample {stored}"]
    verbs += ["verify last", "gate last"]
    verbs += [f"{verb} --json" for verb in verbs]
    verbs += [f"report last -o x.{name}" for name in ("html", "md", "json", "junit.xml")]
    verbs += [f"export last --raw -o x.{name}" for name in ("jsonl", "csv", "parquet")]
    for verb in verbs:
        done = call(monkeypatch, *verb.split(), OPENAI_API_KEY=JUDGE_KEY)
        assert done.code in {0, 1, 3}, done.err
        sinks.seen[verb] = (done.out + done.err).encode()
    sinks.look_at_files()
    pages = pages_of(store)
    paths = ["/", *(f"/runs/{run.id}{more}" for run in runs for more in ("", "/samples"))]
    paths += [f"/runs/{runs[1].id}/samples/{number}" for number in range(SAMPLES)]
    paths += [f"/api{path}" for path in paths if path != "/"]
    for path in paths:
        sinks.seen[path] = pages.get(path).content
    store.close()
    assert sinks.found() == {}
    everything = b"".join(sinks.seen.values())
    assert everything.count(b"[hidden]") > SAMPLES
    assert b"jurybox.db" in b" ".join(name.encode() for name in sinks.seen)
