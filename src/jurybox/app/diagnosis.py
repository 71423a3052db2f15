"""Diagnose the installation for ``jurybox doctor``: extras, models, store, keys and settings."""

import contextlib
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from jurybox import __version__, wiring
from jurybox.errors import JuryboxError
from jurybox.models.local.files import cores, format_bytes, installed
from jurybox.models.providers import API_KEYS, PROVIDER_VARIABLES
from jurybox.settings import MODELS, PRICES, RUBRICS, STORE, TOKEN, VARIABLES
from jurybox.wiring import models_folder

# Each extra is recognized by a package that it installs.
_EXTRAS: Final = {
    "parquet": "pyarrow",
    "postgres": "psycopg",
    "local": "xllamacpp",
    "hub": "huggingface_hub",
    "mcp": "mcp",
}

State = Literal["fine", "absent", "broken"]


class DoctorCheck(msgspec.Struct, frozen=True):
    """One check; ``absent`` isn't an error. ``setting`` is the variable it checks, if set."""

    about: str
    name: str
    state: State
    value: str
    hint: str = ""
    setting: str | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all checks."""

    machine: dict[str, str | int]
    findings: tuple[DoctorCheck, ...]

    @property
    def is_broken(self) -> bool:
        """Whether a setting names something that can't be used."""
        return any(each.state == "broken" and each.setting for each in self.findings)


def diagnose() -> Diagnosis:
    """Run all checks."""
    findings = [*_extras(), *_models(), _store(), *_keys()]
    findings += _settings({each.setting for each in findings if each.state == "broken"})
    return Diagnosis(machine=_machine(), findings=tuple(findings))


def _machine() -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "jurybox": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
    }
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return found


def _extras() -> Iterable[DoctorCheck]:
    for extra, package in _EXTRAS.items():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            hint = f"pip install 'jurybox[{extra}]'"
            yield DoctorCheck("extras", extra, "absent", "not installed", hint)
        else:
            yield DoctorCheck("extras", extra, "fine", f"{package} {version}")


def _models() -> Iterable[DoctorCheck]:
    setting = MODELS if wiring.setting(MODELS) else None
    for kept in installed(models_folder()):
        pull = f"jurybox model pull {kept.entry.name}"
        size = format_bytes(kept.bytes)
        found: dict[str, tuple[State, str, str]] = {
            "ready": ("fine", f"{size}, hash checked", ""),
            "unchecked": ("fine", f"{size}, hash not checked yet", ""),
            "damaged": ("broken", f"{size}, damaged", pull),
            "partial": ("absent", f"{size} pulled so far", pull),
            "absent": ("absent", "not pulled", f"{pull} ({format_bytes(kept.entry.bytes)})"),
        }
        yield DoctorCheck("models", kept.entry.name, *found[kept.state], setting)


def _store() -> DoctorCheck:
    named = wiring.setting(STORE)
    where = named or wiring.DEFAULT_STORE
    shown = wiring.without_secrets(where)
    setting = None if named is None else STORE
    file = where.removeprefix("sqlite:///")
    if "://" not in file and not Path(file).exists():
        value = "none yet; the first run creates it"
        return DoctorCheck("store", shown, "absent", value, setting=setting)
    try:
        with contextlib.closing(wiring.open_run_store(where)) as store:
            newest = store.runs(limit=1)
    except JuryboxError as error:
        return DoctorCheck("store", shown, "broken", str(error), setting=setting)
    value = f"opens; the last run is {newest[0].id}" if newest else "opens; no runs yet"
    return DoctorCheck("store", shown, "fine", value, setting=setting)


def _keys() -> Iterable[DoctorCheck]:
    for name in API_KEYS:
        state, value = ("fine", "set") if wiring.environment().get(name) else ("absent", "not set")
        yield DoctorCheck("keys", name, msgspec.convert(state, State), value)


def _settings(broken: set[str | None]) -> Iterable[DoctorCheck]:
    """Check every other variable that is set and not reported as broken yet."""
    problems = {RUBRICS: _error(wiring.rubric_files), PRICES: _error(wiring.read_prices)}
    secret = {*API_KEYS, TOKEN}
    known = (*VARIABLES, *PROVIDER_VARIABLES)
    names = [name for name in known if wiring.environment().get(name) and name not in secret]
    if not names:
        yield DoctorCheck("settings", "none is set", "absent", "all are at their defaults")
    for name in names:
        problem = problems.get(name)
        if problem is not None:
            yield DoctorCheck("settings", name, "broken", str(problem), setting=name)
        elif name not in broken:
            origin = "the environment" if name in os.environ else "`.env`"
            shown = f"{wiring.without_secrets(wiring.environment()[name])} (from {origin})"
            yield DoctorCheck("settings", name, "fine", shown, setting=name)


def _error(check: Callable[[], object]) -> JuryboxError | None:
    try:
        check()
    except JuryboxError as error:
        return error
    return None
