"""Where a calibration under way keeps its parts and which of its runs are which.

The same command finds the folder again, so that it goes on where it was stopped. Once it is
finished, the folder is history, and the same command measures anew.
"""

import hashlib
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from jurybox.reporting.output_file import whole_file
from jurybox.running.records import ENCODER
from jurybox.wiring import read_settings
from jurybox.wiring.stores import DEFAULT

_FOLDER: Final = "calibrations"
_STATE: Final = "state.json"
# No letters that are taken for each other.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


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
    now = datetime.now(UTC)
    tail = "".join(secrets.choice(_LETTERS) for _ in range(4))
    path = home / f"cal-{now:%Y%m%d-%H%M%S}-{tail}"
    path.mkdir(parents=True)
    made = CalibrationFolder(path, State(key=key), is_new=True, before=before)
    made.save()
    return made


def _home(store_url: str | None) -> Path:
    """Return the folder beside the store; a server's is where the usual store would be."""
    url = store_url or read_settings().store or DEFAULT
    if url.lower().startswith("postgres"):
        return Path(DEFAULT).parent / _FOLDER
    return Path(url.removeprefix("sqlite:///")).parent / _FOLDER
