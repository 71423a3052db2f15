"""Which suite is meant, and what the options of a run say in its place."""

from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.models.names import ModelName
from jurybox.rubric_files import read_path, shown
from jurybox.suite import Suite, TargetSpec, parse_suite
from jurybox.wording import listed, nearest

_ENDINGS: Final = (".yaml", ".yml")
_SUITE: Final = "suite.yaml"
_RESPONSES: Final = "responses"


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said beside the suite; None leaves it to the suite or the rubric."""

    rubric: str | None = None
    target: str | None = None
    prompt: str | None = None
    system: str | None = None
    responses: str | None = None
    judges: tuple[str, ...] = ()
    repeats: int | None = None
    limit: int | None = None
    concurrency: int | None = None
    base_url: str | None = None
    allow_unpinned: bool = False
    cache: bool | None = None
    batch: bool | None = None


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as the options leave it, and from where its paths are meant.

    ``home`` is where commands run and functions are looked for: the suite's folder, but never that
    of a bundled one. Paths that an option gives are meant from here.
    """

    suite: Suite
    origin: str
    folder: Path
    home: Path
    prompt_folder: Path
    system_folder: Path
    responses: Path | None = None


def bundled_suites() -> dict[str, Path]:
    """Return the folders of the bundled suites, by their names."""
    library = Path(str(resources.files("jurybox.suite"))) / "library"
    return {path.parent.name: path.parent for path in sorted(library.glob(f"*/{_SUITE}"))}


def choose_suite(name: str | Path, options: RunOptions) -> Chosen:
    """Find a suite, and put what the options say in its place.

    A name that ends in `.yaml` or holds a `/` is a path; any other is that of a bundled suite
    first.

    Raises:
        InputError: there is no such suite, or the options say what can't be.
        SuiteError: the suite has faults.

    """
    bundled = bundled_suites()
    is_name = isinstance(name, str) and not name.endswith(_ENDINGS) and "/" not in name
    folder = bundled.get(str(name)) if is_name else None
    path = Path(name) if folder is None else folder / _SUITE
    if folder is None and is_name and not _is_file(path):
        otherwise = f"give the path of a suite file, or one of {listed(bundled)}"
        raise InputError("no such suite", nearest(str(name), bundled, otherwise), shown(name))
    file = read_path(path)
    origin = str(name) if folder is not None else file.origin
    suite = _with_target(parse_suite(file.data, origin), options, origin)
    responses = _find_responses(options.responses, folder)
    if folder is not None and suite.target is None and responses is None:
        known = listed(_recorded(folder))
        mend = f"name a model with --target, or responses with --responses: {known} or a file"
        raise InputError("nobody is named who answers", mend, origin)
    here = Path()
    return Chosen(
        suite=suite,
        origin=origin,
        folder=path.parent,
        home=path.parent if folder is None else here,
        prompt_folder=path.parent if options.prompt is None else here,
        system_folder=path.parent if options.system is None else here,
        responses=responses,
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _with_target(suite: Suite, options: RunOptions, origin: str) -> Suite:
    """Return the suite with the target that the options make of its own."""
    given = {"--target": options.target, "--prompt": options.prompt, "--system": options.system}
    named = [option for option, value in given.items() if value is not None]
    if options.responses is not None:
        if named:
            problem = f"recorded responses leave nothing to do for {named[0]}"
            raise InputError(problem, "give --responses or a target, not both")
        return msgspec.structs.replace(suite, target=None)
    if not named:
        return suite
    spec = suite.target
    if options.target is not None:
        # As early as possible, before anything else is read.
        ModelName.parse(options.target)
        spec = msgspec.structs.replace(
            spec or TargetSpec(), model=options.target, command=None, input="text"
        )
    if spec is None:
        raise InputError(f"{named[0]} is for a target", "name one with --target", origin)
    if spec.command is not None and options.system is not None:
        raise InputError("a command takes no system prompt", "leave --system out", origin)
    changes = {"prompt": options.prompt, "system": options.system}
    told = {name: value for name, value in changes.items() if value is not None}
    return msgspec.structs.replace(suite, target=msgspec.structs.replace(spec, **told))


def _find_responses(name: str | None, folder: Path | None) -> Path | None:
    """Return the file of recorded responses: one by its name in a bundled suite, or a path."""
    if name is None:
        return None
    recorded = {} if folder is None else _recorded(folder)
    path = recorded.get(name, Path(name))
    if folder is not None and "/" not in name and not path.suffix and not _is_file(path):
        mend = nearest(name, recorded, f"there are {listed(recorded)}; or give a file")
        raise InputError("no such recorded responses", mend, shown(name))
    return path


def _recorded(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted((folder / _RESPONSES).glob("*.jsonl"))}
