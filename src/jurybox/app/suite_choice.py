"""Find a suite and apply the options that concern its target."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.app.ids import new_id
from jurybox.app.metadata import RunIdentity, check_label
from jurybox.documents.plain_yaml import as_yaml
from jurybox.errors import InputError
from jurybox.models.providers import ModelName
from jurybox.rubric_files import is_file, read_path, shown
from jurybox.suite import Suite, parse_suite
from jurybox.suite.model_spec import chosen_models
from jurybox.suite.target_spec import TargetSpec
from jurybox.text_format import listed, nearest

_SUITE_FILE: Final = "suite.yaml"
_DATASETS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


class RunOptions(RunIdentity, frozen=True, kw_only=True):
    """Overrides of a suite; None leaves a value to the suite or the rubric."""

    rubric: str | None = None
    target: str | None = None
    prompt: str | None = None
    system: str | None = None
    responses: str | None = None
    judges: tuple[str, ...] = ()
    repeats: int | None = None
    dataset: str | None = None
    votes: int | None = None
    limit: int | None = None
    concurrency: int | None = None
    base_url: str | None = None
    allow_unpinned: bool = False
    cache: bool | None = None
    batch: bool | None = None
    filters: tuple[str, ...] = ()

    @property
    def identity(self) -> RunIdentity:
        """The options that are stored with the run."""
        return RunIdentity(**{name: getattr(self, name) for name in RunIdentity.__struct_fields__})


class ChosenSuite(msgspec.Struct, frozen=True, kw_only=True):
    """A suite with its target's overrides applied, and the folders its paths are relative to.

    ``home`` is where commands run and functions are imported: the suite's folder, or the current
    one for a bundled suite. Paths given as options are relative to the current folder.
    """

    suite: Suite
    origin: str
    folder: Path
    home: Path
    responses: Path | None = None


def _check_options(options: RunOptions) -> None:
    if options.name is not None:
        check_label("--name", options.name)
    for tag in options.tags:
        check_label("--tag", tag)
    for each in options.filters:
        if not each.partition("=")[0] or "=" not in each:
            raise InputError("there is no `FIELD=`", "write FIELD=VALUE", f"--filter {each}")


def bundled_suites() -> dict[str, Path]:
    """Return the folders of the bundled suites by name."""
    library = Path(str(resources.files("jurybox.suite"))) / "library"
    return {path.parent.name: path.parent for path in sorted(library.glob(f"*/{_SUITE_FILE}"))}


def _chosen_mapping(suite: Mapping[str, Any], options: RunOptions) -> ChosenSuite:
    """Write a suite given as a mapping to a file, which a resumed run reads again."""
    try:
        # pandas tables have NaN for missing values.
        given = json.dumps(dict(suite))
        text = as_yaml(
            json.loads(given, parse_constant=lambda name: None if name == "NaN" else name)
        )
    except (TypeError, ValueError) as error:
        hint = (
            "give strings, numbers, lists and mappings; functions are given as `judges` or `target`"
        )
        raise InputError(str(error), hint, "suite") from None
    data = text.encode("utf-8", "surrogatepass")
    path = Path(".jurybox", "suites", f"{hashlib.sha256(data).hexdigest()[:16]}.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    chosen = choose_suite(path, options)
    own = chosen.suite
    if own.rows:
        own = msgspec.structs.replace(own, dataset=str(path))
    return msgspec.structs.replace(chosen, suite=own, folder=Path(), home=Path())


def choose_suite(name: "str | Path | Mapping[str, Any]", options: RunOptions) -> ChosenSuite:
    """Find a suite and apply the options that concern its target.

    A name that ends in `.yaml` or contains a `/` is a path; any other is first looked up among the
    bundled suites. A mapping is the suite itself, with paths relative to the current folder.
    """
    if isinstance(name, Mapping):
        return _chosen_mapping(name, options)
    _check_options(options)
    bundled = bundled_suites()
    is_name = isinstance(name, str) and not name.endswith((".yaml", ".yml")) and "/" not in name
    folder = bundled.get(str(name)) if is_name else None
    path = Path(name) if folder is None else folder / _SUITE_FILE
    if folder is None and is_name and not is_file(path):
        otherwise = f"give the path of a suite file, or one of {listed(bundled)}"
        raise InputError("no such suite", nearest(str(name), bundled, otherwise), shown(name))
    file = read_path(path)
    kind = "dataset" if path.suffix.lower() in _DATASETS else "rubric"
    if kind == "dataset" or path.suffix.lower() == ".md":
        hint = f"write a suite with a line `{kind}: {path.name}`, and run that"
        raise InputError(f"this is a {kind}, not a suite", hint, file.origin)
    origin = str(name) if folder is not None else file.origin
    suite = _with_target(parse_suite(file.data, origin), options, origin)
    if suite.rows:
        suite = msgspec.structs.replace(suite, dataset=path.name)
    paths = () if folder is None else sorted((folder / "responses").glob("*.jsonl"))
    recorded = {path.stem: path for path in paths}
    responses = None if options.responses is None else _responses(options.responses, recorded)
    if folder is not None and not (suite.target or suite.targets) and responses is None:
        known = listed(recorded)
        hint = f"name a model with --target, or responses with --responses: {known} or a file"
        raise InputError("the suite has no target and no responses", hint, origin)
    return ChosenSuite(
        suite=suite,
        origin=origin,
        folder=path.parent,
        home=path.parent if folder is None else Path(),
        responses=responses,
    )


def choose_targets(
    chosen: ChosenSuite, options: RunOptions
) -> Iterator[tuple[ChosenSuite, RunOptions]]:
    """Yield the suite and the options of each target; the runs of one suite form a group."""
    suite = chosen.suite
    if not suite.targets:
        yield chosen, options
        return
    group = new_id("group-")
    for spec in suite.targets:
        recorded = spec.responses
        target = spec if recorded is None else None
        yield (
            msgspec.structs.replace(
                chosen,
                suite=msgspec.structs.replace(suite, targets=(), target=target),
                responses=None if recorded is None else chosen.folder / recorded,
            ),
            msgspec.structs.replace(
                options,
                responses=recorded,
                name=None if options.name is None else f"{options.name}-{spec.name}",
                group=group,
                target_name=spec.name,
            ),
        )


def _with_target(suite: Suite, options: RunOptions, origin: str) -> Suite:
    """Return the suite with its target changed by the options."""
    given = {"--target": options.target, "--prompt": options.prompt, "--system": options.system}
    named = [option for option, value in given.items() if value is not None]
    if suite.targets and (named or options.responses is not None):
        problem = "the suite has `targets`, which options can't replace"
        raise InputError(problem, "leave the option out, or write a `target`", origin)
    if options.responses is not None:
        if named:
            problem = f"{named[0]} has no use with recorded responses"
            raise InputError(problem, "give --responses or a target, not both")
        return msgspec.structs.replace(suite, target=None)
    if not named:
        return suite
    spec = suite.target
    if options.target is not None:
        known = () if spec is None or spec.model is None else (spec.model,)
        (model,) = chosen_models([options.target], known)
        ModelName.parse(model.model)
        spec = spec or TargetSpec()
        spec = msgspec.structs.replace(
            spec, model=model, command=None, input="text", timeout=model.timeout or spec.timeout
        )
    if spec is None:
        raise InputError(f"{named[0]} is for a target", "name one with --target", origin)
    if spec.command is not None and options.system is not None:
        raise InputError("a command takes no system prompt", "leave --system out", origin)
    spec = msgspec.structs.replace(
        spec, prompt=options.prompt or spec.prompt, system=options.system or spec.system
    )
    return msgspec.structs.replace(suite, target=spec)


def _responses(name: str, recorded: dict[str, Path]) -> Path:
    """Return the file of recorded responses: bundled ones by name, others by path."""
    path = recorded.get(name, Path(name))
    if recorded and "/" not in name and not path.suffix and not is_file(path):
        hint = nearest(name, recorded, f"there are {listed(recorded)}; or give a file")
        raise InputError("no such recorded responses", hint, shown(name))
    return path
