"""The one place that builds things from settings.

Functions import what they build, so that a command loads only the parts that it uses.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.local import files
from jurybox.models.names import ModelName
from jurybox.models.providers import PROVIDERS, HttpProvider, OwnProvider
from jurybox.settings import (
    CLIENT_CERT,
    CLIENT_KEY,
    REQUESTS_CA_BUNDLE,
    RUBRICS,
    SSL_CERT_FILE,
    TIMEOUT,
    Settings,
)

if TYPE_CHECKING:
    from jurybox.engine.ports import Model, Store
    from jurybox.engine.records import RunRow
    from jurybox.models.connections import HttpOptions
    from jurybox.models.http import HttpClient
    from jurybox.models.local.files import ModelFile
    from jurybox.rubric import Rubric
    from jurybox.rubric_files import RubricFiles

_FOLDER = Path("rubrics")


def read_settings() -> Settings:
    """Return the settings that the environment gives."""
    return Settings.from_environment(os.environ)


def rubric_files() -> "RubricFiles":
    """Return the rubric documents that can be found from here.

    Raises:
        InputError: the setting names a folder that isn't there.

    """
    from jurybox.rubric_files import RubricFiles

    named = read_settings().rubrics
    if named is not None and not Path(named).is_dir():
        raise InputError("no such folder", "make it or change the setting", f"{RUBRICS}={named}")
    return RubricFiles(_folder())


def load_rubric(name: str | os.PathLike[str]) -> "Rubric":
    """Read a rubric by its name (bundled, or in your folder of rubrics) or by its path.

    Raises:
        InputError: there is no such document.
        RubricError: the document has faults; the error holds all of them.

    """
    return load_with_warnings(name)[0]


def load_with_warnings(name: str | os.PathLike[str]) -> "tuple[Rubric, tuple[str, ...]]":
    """Read a rubric, and return with it what is sound in it but probably not meant so.

    Raises:
        InputError: there is no such document.
        RubricError: the document has faults; the error holds all of them.

    """
    from jurybox.errors import RubricError
    from jurybox.rubric_files import RubricFiles, read_path

    if isinstance(name, str):
        files = rubric_files()
        file = files.read(name)
    else:
        # A path needs no folder of rubrics, unless the document extends one of those by its name.
        files = RubricFiles(_folder())
        file = read_path(Path(name))
    reading = files.check(file)
    if reading.rubric is None:
        raise RubricError(file.origin, reading.findings)
    return reading.rubric, tuple(f"{file.origin}:{warning}" for warning in reading.warnings)


def _folder() -> Path:
    named = read_settings().rubrics
    return _FOLDER if named is None else Path(named)


# A day.
_LONGEST_TIMEOUT: Final = 86_400


def build_models(
    names: Sequence[str],
    settings: Settings,
    base_url: str | None = None,
    folder: str | None = None,
) -> dict[str, "Model"]:
    """Return the models by name; those at one endpoint share its connections.

    Functions, recordings and files of models are looked for in ``folder``, which is the current
    one unless it is named.

    Raises:
        InputError: a name is no model's, or something it needs is missing.

    """
    builder = _Builder(settings, base_url, folder or os.getcwd())  # noqa: PTH109 - for sys.path
    return {name: builder.build(ModelName.parse(name)) for name in dict.fromkeys(names)}


def local_file(name: str, folder: str, settings: Settings | None = None) -> "ModelFile":
    """Return the file of an embedded model; a relative path begins at ``folder``.

    Raises:
        InputError: there is no such model, it isn't on this machine, or its file is damaged.

    """
    from jurybox.models.local.files import locate, models_folder

    models = models_folder((settings or read_settings()).models, os.environ)
    return locate(name, models, Path(folder))


class _Builder:
    def __init__(self, settings: Settings, base_url: str | None, folder: str) -> None:
        self._settings = settings
        self._base_url = base_url
        self._folder = folder
        self._clients: dict[str, HttpClient] = {}

    def build(self, name: ModelName) -> "Model":
        provider = PROVIDERS[name.provider]
        if isinstance(provider, OwnProvider):
            models = files.models_folder(self._settings.models, os.environ)
            return provider.build(name.name, self._folder, models)
        if name.provider not in self._clients:
            self._clients[name.provider] = self._client(provider, name.provider)
        return provider.model(name.name, self._clients[name.provider])

    def _client(self, provider: HttpProvider, name: str) -> "HttpClient":
        address = os.environ.get(provider.base_url) or provider.address
        if provider.base_url_option:
            address = self._base_url or address
        key = os.environ.get(provider.api_key) or None
        if key is None and provider.needs_key:
            raise InputError(f"{provider.api_key} is not set", "set it to your key", name)
        if key is not None and not provider.needs_key and urlsplit(address).username is not None:
            problem = f"the address holds a user name, and {provider.api_key} is set too"
            raise InputError(problem, "use one of the two", name)
        return provider.client(address, key, http_options(self._settings))


def http_options(settings: Settings) -> "HttpOptions":
    """Return proxies, certificates and timeouts as the environment has them.

    Raises:
        InputError: a file can't be read, or the timeout is no number of seconds.

    """
    from jurybox.models.connections import HttpOptions, Proxies, Tls

    if settings.client_key is not None and settings.client_cert is None:
        raise InputError(f"{CLIENT_CERT} is not set", "set both, or none", CLIENT_KEY)
    tls = Tls(
        authorities=_read(SSL_CERT_FILE, settings.ssl_cert_file)
        if settings.ssl_cert_file is not None
        else _read(REQUESTS_CA_BUNDLE, settings.requests_ca_bundle),
        certificate=_read(CLIENT_CERT, settings.client_cert),
        # Both may be in one file.
        key=_read(CLIENT_KEY, settings.client_key or settings.client_cert),
    )
    options = HttpOptions(proxies=Proxies.from_environment(os.environ), tls=tls)
    if settings.timeout is None:
        return options
    seconds = _seconds(settings.timeout)
    return msgspec.structs.replace(options, read=seconds, total=seconds)


def _read(variable: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = f"{path} can't be read ({(error.strerror or 'unknown').lower()})"
        raise InputError(problem, "give the path of a PEM file, or unset it", variable) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _LONGEST_TIMEOUT:
        problem = f"`{text}` isn't a number of seconds above 0"
        raise InputError(problem, f"give one up to {_LONGEST_TIMEOUT:,}", TIMEOUT)
    return seconds


def models_folder() -> Path:
    """Return the folder of models that all projects of this user share."""
    return files.models_folder(read_settings().models, os.environ)


DEFAULT_STORE = ".jurybox/jurybox.db"
LAST = "last"
_MANY = 5


def open_run_store(url: str | None = None, *, create: bool = False) -> "Store":
    """Open the store that is named, set in the environment, or usual.

    Raises:
        InputError: there is none.
        IncompleteError: it can't be opened.

    """
    from jurybox.storage import open_store

    return open_store(url or read_settings().store or DEFAULT_STORE, create=create)


def store_folder(url: str | None = None) -> Path:
    """Return the folder of the store's file; for a server, that of the default store."""
    where = url or read_settings().store or DEFAULT_STORE
    is_file = not where.lower().startswith("postgres")
    return Path(where.removeprefix("sqlite:///") if is_file else DEFAULT_STORE).parent


def find_run(store: "Store", name: str) -> "RunRow":
    """Return a run by its id, by the beginning of its id, or the ``last`` one.

    Raises:
        InputError: there is no such run, or there are several.

    """
    if name == LAST:
        newest = store.runs(limit=1)
        if not newest:
            raise InputError("the store has no runs", "run a suite first", LAST)
        return newest[0]
    exact = store.run(name)
    if exact is not None:
        return exact
    found = store.find_runs(name) if name else ()
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(run.id for run in found[:_MANY])
        raise InputError(f"several runs start with this: {ids}", "give more of the id", name)
    raise InputError("no such run", "`jurybox runs` lists them", name)


DEFAULT_JUDGE_NOTICE = (
    "no judge was named, so the embedded {name} judges; it is small, see `jurybox model list`"
)
"""The one line that says so."""


def embedded_judge() -> str | None:
    """Return the embedded judge's name; None where it isn't on this machine.

    It is never downloaded without being asked for: it takes a gigabyte.
    """
    from jurybox.models.local.files import default_judge, installed_runtime, path_of

    entry = default_judge()
    there = installed_runtime() is not None and path_of(entry, models_folder()).is_file()
    return f"local/{entry.name}" if there else None


def no_judge_error(problem: str, hint: str, where: str = "") -> InputError:
    """Return the error for a missing judge, with both ways to get one."""
    from jurybox.models.local.files import default_judge, format_bytes, installed_runtime

    extra = "" if installed_runtime() else '`pip install "jurybox[local]"` and '
    size = format_bytes(default_judge().bytes)
    also = f"or run {extra}`jurybox model pull` ({size}) to have the embedded one"
    return InputError(problem, f"{hint}, {also}", where)
