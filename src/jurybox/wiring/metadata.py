"""What is written down about a run before its first call (A11)."""

import platform
import subprocess
from pathlib import Path
from typing import Final

from jurybox import __version__
from jurybox.running.plan import Metadata, Plan, planned_metadata
from jurybox.scoring.conduct import Procedure
from jurybox.wiring.versions import version_of

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


def run_metadata(
    *, run_id: str, timestamp: str, plan: Plan, procedure: Procedure, region: str | None
) -> Metadata:
    """Return the fourteen fields, and what else belongs to them."""
    target = plan.target
    found = planned_metadata(plan, procedure) | {
        "run_id": run_id,
        "timestamp_utc": timestamp,
        "model_version": None if target is None else _version(target.model, plan),
        "evaluator_model_version": judge_versions(plan),
        "code_version": code_version(Path(plan.folder or ".")),
        "environment": _environment(region),
    }
    # In the order in which people know them, and then the rest.
    return {name: found[name] for name in dict.fromkeys((*_REQUIRED, *found))}


def judge_versions(plan: Plan) -> str | None:
    """Return which versions of its judges a plan would ask now."""
    return _joined([_version(judge, plan) for judge in plan.judges])


def _version(model: str, plan: Plan) -> str | None:
    return None if model.startswith("command/") else version_of(model, plan.folder)


def _joined(versions: list[str | None]) -> str | None:
    """Return the versions of several models in one text; one that isn't known hides none."""
    if not any(versions):
        return None
    return ", ".join(version or "unpinned" for version in versions)


def _environment(region: str | None) -> dict[str, str]:
    found = {
        "jurybox": __version__,
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
    }
    return found if region is None else {**found, "region": region}


def code_version(folder: Path) -> str | None:
    """Return the git commit of a folder, with ``-dirty`` where files differ; None outside git."""
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
