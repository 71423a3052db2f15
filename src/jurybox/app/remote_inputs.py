"""Remote inputs: datasets from the Hugging Face hub, and datasets and prompts from Langfuse."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jurybox.app.ids import kept_dataset
from jurybox.errors import IncompleteError, InputError
from jurybox.integrations.langfuse_client import DeliveryError, FetchedPrompt
from jurybox.models.local.download import hub_client
from jurybox.suite.target_spec import HUB, LANGFUSE
from jurybox.text_format import listed, printable
from jurybox.wiring import langfuse_client, store_folder

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
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError("it names no dataset", f"write `{HUB}OWNER/NAME/SPLIT`", name)
    repository, split, revision = found.groups()
    try:
        hub: Any = hub_client()
    except ImportError:
        problem = "datasets from the hub need huggingface_hub"
        raise InputError(problem, "pip install 'jurybox[hub,parquet]'", name) from None
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


def _listed(hub: Any, repository: str, revision: str | None) -> tuple[str, list[str]]:  # noqa: ANN401
    """Return a commit and its Parquet files; if the default branch has none, the converted ones."""
    for branch in (revision, _CONVERTED):
        info = hub.HfApi().dataset_info(repository, revision=branch)
        names = [PurePosixPath(each.rfilename) for each in info.siblings]
        files = [each for each in names if each.suffix == ".parquet" and ".." not in each.parts]
        if files or revision is not None:
            break
    return info.sha, sorted(map(str, files))


def _by_split(files: Iterable[str]) -> Mapping[str, list[str]]:
    """Group files by split, such as `main/test` for `main/test-00000-of-00001.parquet`."""
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
    """Find the requested split by its full name or the end of it; return its name and files."""
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
    raise InputError(problem, f"add one of {listed(sorted(splits))} after its name", name)


def _reported(error: Exception, name: str) -> InputError | IncompleteError:
    """Return an `InputError` if the hub refused the request, else an `IncompleteError`."""
    words = printable(" ".join(str(error).split()) or type(error).__name__)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in _CLIENT_ERRORS:
        hint = "check the name and the revision; private datasets need `HF_TOKEN`"
        return InputError(f"the hub refused it ({words})", hint, name)
    return IncompleteError(f"{name}: the hub can't be reached ({words}); try again")


def fetch_prompt(name: str) -> FetchedPrompt:
    """Return the prompt ``langfuse:NAME@VERSION``, or the version that a label now marks."""
    prompt, _, which = name.removeprefix(LANGFUSE).rpartition("@")
    try:
        return langfuse_client().prompt(prompt, which)
    except DeliveryError as error:
        raise _refused(error, name) from None


def fetch_dataset(name: str) -> tuple[str, Path]:
    """Write the dataset ``langfuse:NAME`` to a file; ``NAME@TIME`` means its state at that time.

    Returns two values: the dataset's name with its time, and the file's path.
    """
    from jurybox.datasets.foreign_files import ForeignSuite, row_of  # needs numpy; runs don't

    dataset, version = _dated(name.removeprefix(LANGFUSE))
    try:
        rows = [row_of(item, ForeignSuite()) for item in langfuse_client().items(dataset, version)]
    except DeliveryError as error:
        raise _refused(error, name) from None
    if not rows:
        raise InputError("the dataset has no active items", "add some in Langfuse", name)
    file = kept_dataset("datasets", re.sub(r"[^A-Za-z0-9._-]+", "-", dataset), rows)
    at = version.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{LANGFUSE}{dataset}@{at}", file


def _dated(name: str) -> tuple[str, datetime]:
    """Split ``NAME@TIME``; the time defaults to now."""
    dataset, at, text = name.rpartition("@")
    try:
        version = datetime.fromisoformat(text) if at else None
    except ValueError:
        version = None
    if version is None:
        now = datetime.now(UTC)
        return name, now.replace(microsecond=now.microsecond // 1000 * 1000)
    return dataset, version if version.tzinfo else version.replace(tzinfo=UTC)


def _refused(error: DeliveryError, where: str) -> InputError | IncompleteError:
    if error.kind == "unreachable":
        return IncompleteError(f"{where}: {error}; try again")
    hint = "check the name and the version" if error.kind == "rejected" else "then try again"
    return InputError(str(error), hint, where)
