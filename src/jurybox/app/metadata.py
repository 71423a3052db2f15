"""The metadata of a run, recorded before its first call, and changes to its dataset."""

import hashlib
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from jurybox import __version__
from jurybox.datasets import Dataset
from jurybox.engine.plan import Metadata, Plan, planned_metadata
from jurybox.engine.records import RunRow, SampleRow
from jurybox.errors import InputError
from jurybox.models.local.files import runtime
from jurybox.models.providers import ModelName
from jurybox.reporting.stored import SampleRecord
from jurybox.sample import Row
from jurybox.settings import REGION
from jurybox.wiring import LAST, local_file

ALLOW_VERSION_DRIFT: Final = "allow_version_drift"
"""The metadata field that says whether other versions of the models are accepted."""

MAX_COST: Final = "max_cost"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run's name, tags and budget, and whether model versions may drift; stored as metadata.

    ``baseline`` is the id of the run to compare with, ``group`` identifies the runs of one suite
    with several targets, and ``target_name`` is the name of this run's target.
    """

    name: str | None = None
    tags: tuple[str, ...] = ()
    baseline: str | None = None
    group: str | None = None
    target_name: str | None = None
    max_cost: float | None = None
    allow_version_drift: bool = False


NAMELESS: Final = RunIdentity()


def check_label(option: str, name: str) -> None:
    """Refuse an invalid name or tag of a run."""
    if _NAME.fullmatch(name) is None or name == LAST:
        hint = f"use up to 64 letters, digits, `.`, `_` and `-`, and not `{LAST}`"
        raise InputError(f"`{name}` can't be a run's name or tag", hint, option)


_REQUIRED: Final = (
    "run_id",
    "timestamp_utc",
    "dataset_id",
    "dataset_version_or_hash",
    "model_id",
    "model_version",
    "evaluator_model_id",
    "evaluator_model_version",
    "prompt_template_id",
    "prompt_template_version_or_hash",
    "evaluator_prompt_template_version_or_hash",
    "generation_params",
    "code_version",
    "environment",
)
_VERSIONS: Final = ("model_version", "evaluator_model_version")


def run_metadata(
    *,
    run_id: str,
    timestamp: str,
    plan: Plan,
    region: str | None,
    identity: RunIdentity = NAMELESS,
    rescored: Metadata | None = None,
) -> Metadata:
    """Return the fourteen required fields, then further ones.

    The replies of a rescored run come from the models of the run whose metadata is ``rescored``.
    """
    found = planned_metadata(plan, plan.procedure()) | {
        "run_id": run_id,
        "timestamp_utc": timestamp,
        **(_versions(plan) if rescored is None else {name: rescored[name] for name in _VERSIONS}),
        "code_version": code_version(Path(plan.folder or ".")),
        "environment": {
            "jurybox": __version__,
            "runtime": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": f"{platform.system()} {platform.machine()}",
            "region": region,
        },
        ALLOW_VERSION_DRIFT: False,
        **msgspec.to_builtins(identity),
    }
    reasons = _why_not_known(plan)
    found["not_known"] = {
        name: reasons[name]
        for name in (*_REQUIRED, "environment.region")
        if (region if name == "environment.region" else found[name]) is None
    }
    return {name: found[name] for name in dict.fromkeys((*_REQUIRED, *found))}


def _versions(plan: Plan) -> Metadata:
    target = None if plan.target is None else _version(plan.target.model, plan)
    return dict(zip(_VERSIONS, (target, judge_versions(plan)), strict=True))


def _why_not_known(plan: Plan) -> dict[str, str]:
    """Return the reasons why fields may be null, by field."""
    unpinned = "neither its name nor its file states the version"
    target = "the responses are recorded" if plan.target is None else None
    judge = None if plan.judges else "no judge is asked"
    template = target or "the task is sent without a prompt template"
    return {
        "model_version": target or unpinned,
        "prompt_template_id": template,
        "prompt_template_version_or_hash": template,
        "evaluator_model_id": judge or unpinned,
        "evaluator_model_version": judge or unpinned,
        "evaluator_prompt_template_version_or_hash": judge or unpinned,
        "code_version": "the suite's folder is not in a git repository with a commit",
        "environment.region": f"{REGION} is not set",
    }


def judge_versions(plan: Plan) -> str | None:
    """Return the current versions of a plan's judges."""
    versions = [_version(judge, plan) for judge in plan.judges]
    return ", ".join(each or "unpinned" for each in versions) if any(versions) else None


def recorded_versions(row: RunRow) -> object:
    """Return the versions of a run's judges when it ran."""
    metadata = msgspec.json.decode(row.metadata, type=dict[str, object])
    return metadata.get("evaluator_model_version")


def _version(model: str, plan: Plan) -> str | None:
    """Return the version of a model: from its name, or the hash of its file.

    For a function, only its own file is hashed; the git commit of a run covers its imports. A local
    model's version includes the build of its runtime.
    """
    if model.startswith("command/"):
        return None
    name = ModelName.parse(model)
    match name.provider:
        case "python":
            module = sys.modules.get(name.name.partition(":")[0])
            file = getattr(module, "__file__", None)
            return name.version or (None if file is None else _hash(Path(file)))
        case "replay":
            return _hash(Path(plan.folder) / name.name)
        case "local":
            with suppress(InputError):
                return f"sha256:{local_file(name.name, plan.folder).sha256} {runtime()}"
            return None
        case _:
            return name.pin


def code_version(folder: Path) -> str | None:
    """Return a folder's git commit, plus ``-dirty`` if it has changed since; None outside git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changes or changes is None else commit


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - arguments of our own
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _hash(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    return None


def first_change(dataset: Dataset, plan: Plan, samples: Iterator[SampleRow]) -> str | None:
    """Describe the first difference between a dataset and a run's stored samples, if any.

    A dataset may have been changed and restored while its run was in progress.
    """
    for _, repeat in groupby(samples, lambda sample: sample.repeat):
        rows = enumerate(dataset.rows(needs_response=plan.target is None))
        for sample in repeat:
            place = sample.number % plan.dataset.used
            found = next((each for index, each in rows if index == place), None)
            if found is None:
                return f"sample `{sample.sample_id}` is missing"
            line, now = found
            record = SampleRecord(sample)
            response = record.responses.response if plan.target is None else None
            other = record.responses.response_b
            before = msgspec.structs.replace(record.inputs, response=response, response_b=other)
            if now.id != before.id:
                return f"{dataset.where(line)} was sample `{before.id}` and is now `{now.id}`"
            for field in Row.__struct_fields__:
                if getattr(before, field) != getattr(now, field):
                    return f"{dataset.where(line)}, sample `{now.id}`, has a different `{field}`"
    return None
