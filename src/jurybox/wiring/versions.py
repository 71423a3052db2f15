"""Which version of a model a run uses, as far as that can be known before it is asked."""

import hashlib
import sys
from pathlib import Path

from jurybox.errors import InputError
from jurybox.models.names import ModelName


def version_of(model: str, folder: str) -> str | None:
    """Return what pins a model: the version in its name, or the hash of the file it is in.

    A function's own file is hashed, not what it imports; the git commit of a run says the rest. A
    model that runs here also depends on the build that runs it.
    """
    name = ModelName.parse(model)
    match name.provider:
        case "python":
            module = sys.modules.get(name.name.partition(":")[0])
            file = getattr(module, "__file__", None)
            return name.version or (None if file is None else _hash(Path(file)))
        case "replay":
            return _hash(Path(folder) / name.name)
        case "local":
            return _local(name.name, folder)
        case _:
            return name.pin


def _local(name: str, folder: str) -> str | None:
    from jurybox.models.local.runtime import runtime
    from jurybox.wiring.models import local_file

    try:
        return f"sha256:{local_file(name, folder).sha256} {runtime()}"
    except InputError:
        return None


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return None
