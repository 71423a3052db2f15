"""Calibrations as they are stored, and what they say about a run. Needs no numpy."""

import hashlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jurybox.app.ids import new_id
from jurybox.calibration.agreement_values import Agreement
from jurybox.calibration.calibration_record import (
    Calibration,
    CalibrationStatus,
    GoldSource,
    JudgedRun,
    Setting,
    Tuning,
    calibration_status,
)
from jurybox.engine.records import ENCODER, CalibrationRow, seal_of, sealed
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.output_file import whole_file
from jurybox.wiring import DEFAULT_STORE, read_settings

if TYPE_CHECKING:
    from jurybox.engine.ports import Store
    from jurybox.reporting.view import RunView

LAST = "last"
_MANY = 5
_LOOKED_AT = 1000


class _Judged(msgspec.Struct, frozen=True):
    """What is read of a report here."""

    method: str


_JUDGED = msgspec.json.Decoder(_Judged)


def calibration_row(made: Calibration) -> CalibrationRow:
    """Return a calibration as it is stored."""
    return sealed(
        CalibrationRow(
            id=made.id,
            rubric_id=made.rubric_id,
            created_at=made.created_at,
            rubric_version=made.rubric_version,
            rubric_sha256=made.rubric_sha256,
            judges=_text(made.judges),
            judge_version=made.judge_version,
            prompt_sha256=made.prompt_sha256,
            votes=made.votes,
            seed=made.seed,
            n=made.figures.n,
            gold=_text(made.gold),
            runs=_text(made.runs),
            figures=_text(made.figures),
            tuning=None if made.tuning is None else _text(made.tuning),
        )
    )


def read_calibration(row: CalibrationRow) -> Calibration:
    """Return a stored calibration.

    Raises:
        IncompleteError: somebody has changed it, or it can't be read.

    """
    if seal_of(row) != row.seal:
        what = f"calibration {row.id} was changed after it was stored, so it proves nothing"
        raise IncompleteError(f"{what}; calibrate again")
    try:
        return Calibration(
            id=row.id,
            created_at=row.created_at,
            rubric_id=row.rubric_id,
            rubric_version=row.rubric_version,
            rubric_sha256=row.rubric_sha256,
            judges=msgspec.json.decode(row.judges, type=tuple[str, ...]),
            judge_version=row.judge_version,
            prompt_sha256=row.prompt_sha256,
            votes=row.votes,
            gold=msgspec.json.decode(row.gold, type=GoldSource),
            seed=row.seed,
            figures=msgspec.json.decode(row.figures, type=Agreement),
            runs=msgspec.json.decode(row.runs, type=tuple[JudgedRun, ...]),
            tuning=None if row.tuning is None else msgspec.json.decode(row.tuning, type=Tuning),
        )
    except msgspec.DecodeError as error:
        what = f"calibration {row.id} can't be read ({error}); calibrate again"
        raise IncompleteError(what) from None


def find_calibration(store: "Store", name: str) -> Calibration:
    """Return a calibration by its id, by the beginning of its id, or the ``last`` one.

    Raises:
        InputError: there is no such calibration, or there are several.
        IncompleteError: somebody has changed it.

    """
    rows = store.calibrations()
    if name == LAST:
        found = rows[:1]
    else:
        found = [row for row in rows if row.id == name] or [
            row for row in rows if name and row.id.startswith(name)
        ]
    if not rows:
        hint = "make one with `jurybox calibrate --gold FILE`"
        raise InputError("the store has no calibrations", hint)
    if not found:
        known = ", ".join(row.id for row in rows[:_MANY])
        raise InputError("no such calibration", f"there are {known}", name)
    if len(found) > 1:
        ids = ", ".join(row.id for row in found[:_MANY])
        raise InputError(f"several calibrations begin so: {ids}", "give more of the id", name)
    return read_calibration(found[0])


def setting_of(view: "RunView") -> Setting | None:
    """Return what a run's judging depends on; None where nobody judged."""
    said: dict[str, Any] = view.metadata
    rubric: dict[str, str] = said.get("rubric") or {}
    prompt: str | None = said.get("evaluator_prompt_template_version_or_hash")
    judges: str | None = said.get("evaluator_model_id")
    if not judges or prompt is None or "sha256" not in rubric:
        return None
    return Setting(
        rubric_version=rubric.get("version", ""),
        rubric_sha256=rubric["sha256"],
        judges=tuple(judges.split(", ")),
        judge_version=judge_version(view, judges.split(", ")),
        prompt_sha256=prompt.removeprefix("sha256:"),
        votes=said.get("votes") or 0,
    )


def judge_version(view: "RunView", judges: list[str]) -> str | None:
    """Return which versions judged: those that names and files tell, and what providers report."""
    known: str | None = view.metadata.get("evaluator_model_version")
    reported = sorted(
        {each.version for name in judges for each in view.conclusion.reported.get(name, ())}
    )
    told = ", ".join(reported)
    if not told or told == known:
        return known
    return f"{known}, reported {told}" if known else told


def calibration_of_run(view: "RunView", store: "Store") -> CalibrationStatus | str | None:
    """Return how a run stands with people.

    None where its rubric was never calibrated, or where the run was re-scored: its judges never saw
    the rubric it names. A text where what is stored can't be believed.
    """
    setting = setting_of(view)
    if setting is None or view.derived_from is not None:
        return None
    rubric: dict[str, str] = view.metadata["rubric"]
    try:
        known = [read_calibration(row) for row in store.calibrations(rubric["id"])]
    except IncompleteError as error:
        return str(error)
    found = calibration_status(known, setting)
    if found is None or found.stale:
        return found
    # Only now, for it takes samples to tell.
    try:
        methods = _methods(store, view.run_id)
    except msgspec.DecodeError as error:
        return f"run {view.run_id} can't be read ({error}); `jurybox verify` says where"
    return calibration_status(known, msgspec.structs.replace(setting, methods=methods))


def _methods(store: "Store", run_id: str) -> tuple[str, ...]:
    """Return how the samples of a run were judged, as their reports call it.

    Rows of one dataset are alike, and to look at all of a hundred thousand would take longer than
    to show the run.
    """
    reports = (sample.report for sample in islice(store.samples(run_id), _LOOKED_AT))
    return tuple(sorted({_JUDGED.decode(each).method for each in reports if each is not None}))


def calibration_status_as_data(found: CalibrationStatus | str | None) -> dict[str, Any] | None:
    """Return it as ``run --json`` and ``show --json`` print it."""
    if found is None:
        return None
    if isinstance(found, str):
        return {"trouble": found}
    return {**msgspec.to_builtins(found), "text": found.line}


def _text(value: object) -> str:
    return ENCODER.encode(value).decode()


def as_data(made: Calibration) -> dict[str, Any]:
    """Return a calibration as ``calibrate --json`` prints it."""
    data: dict[str, Any] = msgspec.to_builtins(made)
    known = [each.dollars for each in made.runs]
    data["dollars"] = None if None in known else sum(filter(None, known))
    return data


_FOLDER: Final = "calibrations"
_STATE: Final = "state.json"


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How far a calibration is.

    Attributes:
        key: the hash of all that decides what it does.
        runs: the run of each part and rubric.
        replies: what a model proposed, by round; it was paid for.
        finished: whether its record is stored.

    """

    key: str
    runs: dict[str, str] = {}
    replies: dict[str, list[str]] = {}
    finished: bool = False


class CalibrationFolder:
    """The folder of one calibration."""

    def __init__(
        self, path: Path, state: State, *, is_new: bool, before: str | None = None
    ) -> None:
        self.path = path
        self.state = state
        self.is_new = is_new
        self.before = before
        """The last calibration that did the same and is finished, if this one is new."""

    @property
    def id(self) -> str:
        """The calibration's name."""
        return self.path.name

    def run_of(self, label: str) -> str | None:
        """Return the run that was begun for something."""
        return self.state.runs.get(label)

    def note_run(self, label: str, run_id: str) -> None:
        """Write down which run it is, before it costs anything."""
        self.save(runs={**self.state.runs, label: run_id})

    def forget_run(self, run_id: str) -> None:
        """Have another run made in the place of one that came to nothing."""
        self.save(runs={label: each for label, each in self.state.runs.items() if each != run_id})

    def note_reply(self, label: str, text: str) -> None:
        """Write down what a model replied."""
        said = [*self.state.replies.get(label, []), text]
        self.save(replies={**self.state.replies, label: said})

    def finish(self) -> None:
        """Write down that there is nothing more to do."""
        self.save(finished=True)

    def discard(self) -> None:
        """Take away a folder in which nothing was done yet."""
        (self.path / _STATE).unlink(missing_ok=True)
        self.path.rmdir()

    def save(self, **changes: object) -> None:
        """Write down the state, with what has changed."""
        self.state = msgspec.structs.replace(self.state, **changes)
        with whole_file(self.path / _STATE) as file:
            file.write(ENCODER.encode(self.state))


def key_of(ingredients: object) -> str:
    """Return the hash of all that decides what a calibration does."""
    return hashlib.sha256(ENCODER.encode(ingredients)).hexdigest()


def open_folder(store_url: str | None, key: str) -> CalibrationFolder:
    """Return the folder of the calibration with this key, a new one if there is none."""
    home = _home(store_url)
    before: str | None = None
    for path in sorted(home.glob(f"*/{_STATE}"), reverse=True):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=State)
        except (OSError, msgspec.DecodeError):
            continue
        if state.key != key:
            continue
        if not state.finished:
            return CalibrationFolder(path.parent, state, is_new=False)
        before = before or path.parent.name
    path = home / new_id("cal-")
    path.mkdir(parents=True)
    made = CalibrationFolder(path, State(key=key), is_new=True, before=before)
    made.save()
    return made


def _home(store_url: str | None) -> Path:
    """Return the folder beside the store; a server's is where the usual store would be."""
    url = store_url or read_settings().store or DEFAULT_STORE
    if url.lower().startswith("postgres"):
        return Path(DEFAULT_STORE).parent / _FOLDER
    return Path(url.removeprefix("sqlite:///")).parent / _FOLDER
