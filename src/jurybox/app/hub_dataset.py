"""Datasets of the Hugging Face hub: their Parquet files, at a revision that the run records."""

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jurybox.errors import IncompleteError, InputError
from jurybox.suite.target_spec import HUB
from jurybox.text_format import listed, printable
from jurybox.wiring import store_folder

_NAME: Final = re.compile(HUB + r"(\b[\w.-]+\b/\b[\w.-]+\b)(?:/([\w./-]+))?(?:@([\w./-]+))?")
PATTERN: Final = "**/*.parquet"
# The branch in which the hub keeps every dataset as Parquet.
_CONVERTED: Final = "refs/convert/parquet"
_SHARD: Final = re.compile(r"(?:^|-)\d+(?:-of-\d+)?(?:-[0-9a-f]+)?$")
_UNNAMED: Final = ("data", "default")
_CLIENT_ERRORS: Final = range(400, 500)


def fetch_hub_dataset(name: str) -> tuple[str, Path]:
    """Download the files of ``hf://OWNER/NAME[/SPLIT][@REVISION]``, unless they are cached.

    Returns a name with the split and the revision, and the folder of the files.

    Raises:
        InputError: there is no such dataset or split, or huggingface_hub isn't installed.
        IncompleteError: the hub can't be reached.

    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError("it names no dataset", f"write `{HUB}OWNER/NAME/SPLIT`", name)
    repository, split, revision = found.groups()
    hub = _client(name)
    try:
        sha, files = _listed(hub, repository, revision)
        label, chosen = _chosen(_by_split(files), split, name)
        place = f"{repository}-{label}".replace("/", "-")
        folder = store_folder() / "datasets" / f"{place}-{sha[:12]}"
        for file in chosen:
            hub.hf_hub_download(
                repository, file, repo_type="dataset", revision=sha, local_dir=folder
            )
    except (InputError, IncompleteError):
        raise
    except Exception as error:
        raise _reported(error, name) from error
    return f"{HUB}{repository}/{label}@{sha}", folder


def _client(name: str) -> Any:  # noqa: ANN401 - it has no types
    try:
        hub: Any = importlib.import_module("huggingface_hub")
        logging: Any = importlib.import_module("huggingface_hub.utils.logging")
    except ImportError:
        problem = "datasets of the hub need huggingface_hub"
        raise InputError(problem, "pip install 'jurybox[hub,parquet]'", name) from None
    # It would log every attempt with its full address, which may contain a password.
    logging.set_verbosity_error()
    return hub


def _listed(hub: Any, repository: str, revision: str | None) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return a revision's commit and its Parquet files, or those that the hub converted."""
    for branch in (revision, _CONVERTED):
        info = hub.HfApi().dataset_info(repository, revision=branch)
        names = [PurePosixPath(each.rfilename) for each in info.siblings]
        files = [each for each in names if each.suffix == ".parquet" and ".." not in each.parts]
        if files or revision is not None:
            break
    return info.sha, sorted(map(str, files))


def _by_split(files: Iterable[str]) -> Mapping[str, list[str]]:
    """Group files by their split: `main/test` of `main/test-00000-of-00001.parquet`."""
    splits: dict[str, list[str]] = {}
    for file in files:
        path = PurePosixPath(file)
        parts = [*path.parent.parts, _SHARD.sub("", path.stem)]
        label = "/".join(part for part in parts if part and part not in _UNNAMED)
        splits.setdefault(label or "all", []).append(file)
    return splits


def _chosen(
    splits: Mapping[str, list[str]], wanted: str | None, name: str
) -> tuple[str, list[str]]:
    """Return the requested split, by its full name or the end of it, and its files."""
    fitting = [
        label
        for label in splits
        if wanted is None or label == wanted or label.endswith(f"/{wanted}")
    ]
    exact = [label for label in fitting if label == wanted] or fitting
    if len(exact) == 1:
        return exact[0], splits[exact[0]]
    if not splits:
        hint = "download it, and name its files as `dataset`"
        raise InputError("the dataset has no Parquet files on the hub", hint, name)
    problem = "the dataset has several splits" if fitting else f"there is no split `{wanted}`"
    raise InputError(problem, f"name one of {listed(sorted(splits))} behind its name", name)


def _reported(error: Exception, name: str) -> InputError | IncompleteError:
    """Return the hub's refusal as one line; other errors may be temporary."""
    words = printable(" ".join(str(error).split()) or type(error).__name__)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in _CLIENT_ERRORS:
        hint = "check the name and the revision; private datasets need `HF_TOKEN`"
        return InputError(f"the hub refused it ({words})", hint, name)
    return IncompleteError(f"{name}: the hub can't be reached ({words}); try again")
