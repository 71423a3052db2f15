"""Creates an environment for every tool under `.cache/peers`, and measures its size."""

import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from drive import ENVIRONMENTS
from material import Peer, size_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SOURCE = Path(__file__).parents[1] / "src" / "jurybox"
READY = "ready.json"
# They came with the environment and not with the tool.
TOOLS = {"pip", "setuptools", "wheel"}


def prepare(name: str, peer: Peer) -> str:
    """Install a tool, unless it is there; return what went wrong, or nothing."""
    place = ENVIRONMENTS / name
    wanted = json.dumps(peer.install)
    if not peer.install or ((place / READY).is_file() and (place / READY).read_text() == wanted):
        return ""
    print(f"installing {name}", file=sys.stderr, flush=True)
    if peer.node:
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}')
        command = ["npm", "install", "--no-fund", "--no-audit", *peer.install]
    else:
        if not (place / "bin" / "python").exists():
            venv.create(place, with_pip=True, symlinks=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        command = [*pip, "install", "--quiet", *peer.install]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"can't be installed: {error}"
    if done.returncode != 0:
        return f"can't be installed: {' '.join(done.stderr.split())[-300:]}"
    (place / READY).write_text(wanted)
    return ""


def size(name: str, peer: Peer) -> tuple[int, float]:
    """Return how many packages were installed for a tool, and their megabytes."""
    place = ENVIRONMENTS / name
    if peer.node:
        lock = json.loads((place / "node_modules" / ".package-lock.json").read_text())
        return len(lock["packages"]), size_of(place / "node_modules") / 1e6
    if peer.install:
        site = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        found = importlib.metadata.distributions(path=[str(site)])
        chosen = [each for each in found if canonicalize_name(each.name) not in TOOLS]
        return len(chosen), sum(map(bytes_of, chosen)) / 1e6
    needed = closure(peer.package)
    return len(needed), (sum(map(bytes_of, needed)) + size_of(SOURCE)) / 1e6


def closure(package: str) -> list[importlib.metadata.Distribution]:
    """Return a package and all that it needs here, without what only development needs."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [package]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        for text in found[name].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return list(found.values())


def bytes_of(distribution: importlib.metadata.Distribution) -> int:
    """Return the bytes of the files that were installed with a distribution."""
    total = 0
    for file in distribution.files or ():
        path = str(distribution.locate_file(file))
        total += os.path.getsize(path) if os.path.isfile(path) else 0  # noqa: PTH113, PTH202
    return total
