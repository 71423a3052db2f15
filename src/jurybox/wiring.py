"""Builds models, stores and clients from the environment, which only this module reads.

Functions import what they build, so that a command loads only the parts that it uses.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.local import files
from jurybox.models.providers import PROVIDERS, HttpProvider, ModelName, OwnProvider, load_prices
from jurybox.settings import (
    CLIENT_CERT,
    CLIENT_KEY,
    LANGFUSE_BASE_URL,
    LANGFUSE_HOST,
    LANGFUSE_PUBLIC_KEY,
    LANGFUSE_SECRET_KEY,
    MODELS,
    PATIENCE,
    PRICES,
    REQUESTS_CA_BUNDLE,
    RUBRICS,
    SSL_CERT_FILE,
    STORE,
    TIMEOUT,
)

if TYPE_CHECKING:
    from jurybox.engine.limiter import Limits
    from jurybox.engine.ports import Model
    from jurybox.engine.records import RunRow
    from jurybox.integrations.langfuse_client import LangfuseClient
    from jurybox.models.connections import HttpOptions
    from jurybox.models.http import HttpClient
    from jurybox.models.local.files import ModelFile
    from jurybox.rubric import Rubric
    from jurybox.rubric_files import RubricFiles
    from jurybox.scoring.prices import Prices
    from jurybox.storage.store import Store
    from jurybox.suite.model_spec import ModelSpec

_FOLDER = Path("rubrics")


_ENV_FILE = Path(".env")
_ENV_LINE = re.compile(
    r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:'([^']*)'|"([^"]*)"|(.*?))\s*(?:\s\#.*)?"""
)


def environment() -> Mapping[str, str]:
    """Return the environment, with missing variables from `.env` in the current folder."""
    try:
        lines = _ENV_FILE.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return os.environ
    read = [found for line in lines if (found := _ENV_LINE.fullmatch(line))]
    own = {found[1]: found[2] or found[3] or found[4] or "" for found in read}
    return {**own, **os.environ}


def setting(name: str) -> str | None:
    """Return the value of an environment variable; None if it is empty or not set."""
    return environment().get(name) or None


def read_prices() -> "Prices":
    """Return the bundled prices, overridden by the user's file."""
    return load_prices(setting(PRICES))


def rubric_files() -> "RubricFiles":
    """Return the bundled rubric documents and the user's."""
    from jurybox.rubric_files import RubricFiles

    named = setting(RUBRICS)
    if named is not None and not Path(named).is_dir():
        raise InputError("no such folder", "create it or change the setting", f"{RUBRICS}={named}")
    return RubricFiles(_folder())


def load_rubric(name: str | os.PathLike[str]) -> "Rubric":
    """Read a rubric by name (bundled, or in your rubric folder) or by path.

    Raises:
        InputError: the document isn't found.
        RubricError: the document has faults; the error lists all of them.

    """
    from jurybox.rubric_files import RubricFiles, read_path

    if isinstance(name, str):
        files = rubric_files()
        return files.parse(files.read(name))
    # A path needs no rubric folder, unless the document extends a rubric by name.
    return RubricFiles(_folder()).parse(read_path(Path(name)))


def _folder() -> Path:
    return Path(setting(RUBRICS) or _FOLDER)


# One day, in seconds.
_LONGEST_TIMEOUT: Final = 86_400


def local_file(name: str, folder: str) -> "ModelFile":
    """Return the file of an embedded model; a relative path is relative to ``folder``."""
    return files.locate(name, models_folder(), Path(folder))


class ModelBuilder:
    """Builds models; those with the same endpoint, key and timeout share connections.

    ``base_url`` is the endpoint of models without their own. Functions, recordings and model files
    are looked for in ``folder``, by default the current one.
    """

    def __init__(self, base_url: str | None = None, folder: str | None = None) -> None:
        self._base_url = base_url
        self._folder = folder or os.getcwd()  # noqa: PTH109 - for sys.path
        self._clients: dict[object, HttpClient] = {}

    def build(self, spec: "ModelSpec") -> "Model":
        """Return a model; it connects with its first request."""
        name = ModelName.parse(spec.model)
        provider = PROVIDERS[name.provider]
        if isinstance(provider, OwnProvider):
            if spec.base_url is not None or spec.api_key_env is not None:
                problem = f"`{name.provider}` models have no endpoint"
                raise InputError(problem, "leave out `base_url` and `api_key_env`", spec.model)
            return provider.build(name.name, self._folder, models_folder())
        shared = (name.provider, spec.base_url, spec.api_key_env, spec.timeout)
        if shared not in self._clients:
            self._clients[shared] = self._client(provider, spec)
        return provider.model(name.name, self._clients[shared])

    def _client(self, provider: HttpProvider, spec: "ModelSpec") -> "HttpClient":
        variables = environment()
        usual = variables.get(provider.base_url) or provider.address
        if provider.base_url_option:
            usual = self._base_url or usual
        address = spec.base_url or usual
        official = _host(address) == _host(provider.address)
        variable = spec.api_key_env
        # A provider's key is never sent to another host.
        if variable is None and (official or _host(address) == _host(usual)):
            variable = provider.api_key
        key = None if variable is None else variables.get(variable) or None
        if key is None and (official or spec.api_key_env is not None):
            hint = "set it to your key, or set `base_url` to another endpoint"
            raise InputError(f"{variable} is not set", hint, spec.model)
        options = http_options(spec.timeout)
        options = msgspec.structs.replace(options, key_variable=variable if key else None)
        return provider.client(address, key, options)


def worker_variables(specs: "Iterable[ModelSpec]") -> dict[str, str]:
    """Return the environment variables that a worker needs; they are never stored.

    These are the addresses, keys and timeouts of models, and libpq's variables, such as PGPASSWORD.
    Proxies, certificates and files are configured on each machine.
    """
    names = [TIMEOUT, PATIENCE, *(name for name in environment() if name.startswith("PG"))]
    for spec in specs:
        provider = PROVIDERS[ModelName.parse(spec.model).provider]
        if isinstance(provider, HttpProvider):
            names += (provider.base_url, spec.api_key_env or provider.api_key)
    variables = environment()
    return {name: variables[name] for name in names if name in variables}


def known_keys(specs: "Iterable[ModelSpec]") -> list[str]:
    """Return the keys in the environment: those of all providers and of these models."""
    names = {each.api_key for each in PROVIDERS.values() if isinstance(each, HttpProvider)}
    names |= {spec.api_key_env for spec in specs if spec.api_key_env is not None}
    variables = environment()
    return [variables[name] for name in sorted(names) if variables.get(name)]


def takes_base_url(spec: "ModelSpec") -> bool:
    """Return whether ``--base-url`` applies to a model."""
    provider = PROVIDERS[ModelName.parse(spec.model).provider]
    return spec.base_url is None and isinstance(provider, HttpProvider) and provider.base_url_option


def _host(address: str) -> str:
    """Return the host and port of an address; empty if malformed, which the client reports."""
    try:
        return urlsplit(address).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""


def http_options(timeout: float | None = None) -> "HttpOptions":
    """Return proxies, certificates and timeouts from the environment.

    A model's own ``timeout`` can only lengthen these timeouts; the model's caller enforces it.
    """
    from jurybox.models.connections import HttpOptions, Proxies, Tls

    if setting(CLIENT_KEY) is not None and setting(CLIENT_CERT) is None:
        raise InputError(f"{CLIENT_CERT} is not set", "set both or neither", CLIENT_KEY)
    tls = Tls(
        authorities=_read(SSL_CERT_FILE if setting(SSL_CERT_FILE) else REQUESTS_CA_BUNDLE),
        certificate=_read(CLIENT_CERT),
        # The certificate and its key may be in one file.
        key=_read(CLIENT_KEY if setting(CLIENT_KEY) else CLIENT_CERT),
    )
    options = HttpOptions(proxies=Proxies.from_environment(environment()), tls=tls)
    if (seconds := _seconds(TIMEOUT)) is not None:
        options = msgspec.structs.replace(options, read=seconds, total=seconds)
    if timeout is None:
        return options
    # One second more, because the caller of the model enforces the timeout itself.
    read, total = max(options.read, timeout + 1), max(options.total, timeout + 1)
    return msgspec.structs.replace(options, read=read, total=total)


def _read(variable: str) -> bytes | None:
    if (path := setting(variable)) is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = f"{path} can't be read ({(error.strerror or 'unknown').lower()})"
        raise InputError(problem, "give the path of a PEM file, or unset it", variable) from None


def read_limits(*, concurrency: int | None = None, patience: float | None = None) -> "Limits":
    """Return the limits of an endpoint; the setting for patience overrides ``patience``."""
    from jurybox.engine.limiter import Limits

    limits = Limits() if patience is None else Limits(patience=patience)
    if (seconds := _seconds(PATIENCE)) is not None:
        limits = msgspec.structs.replace(limits, patience=seconds)
    if concurrency is None:
        return limits
    # A configured concurrency is used at once, since ramping up takes seconds.
    return msgspec.structs.replace(limits, concurrency=concurrency, start=concurrency)


def _seconds(variable: str) -> float | None:
    if (text := setting(variable)) is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _LONGEST_TIMEOUT:
        problem = f"`{text}` isn't a number of seconds above 0"
        raise InputError(problem, f"set a number up to {_LONGEST_TIMEOUT:,}", variable)
    return seconds


def models_folder() -> Path:
    """Return the user's folder of models, shared by all projects."""
    return files.models_folder(setting(MODELS), environment())


DEFAULT_STORE = ".jurybox/jurybox.db"
LAST = "last"
HELPER_RUN = "~"
"""Marks the suite names of runs made by a calibration or a probe."""
_AGED = re.compile(rf"{LAST}(?:~(\d{{1,6}}))?")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MANY = 5


def open_run_store(url: str | None = None, *, create: bool = False) -> "Store":
    """Open the named store, or the one set in the environment, or the default."""
    from jurybox.storage import open_store

    return open_store(url or setting(STORE) or DEFAULT_STORE, create=create)


def without_secrets(address: str) -> str:
    """Return an address without user name, password and query; a path is returned unchanged."""
    if "://" not in address or address.startswith("sqlite"):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return "[hidden]"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def store_folder(url: str | None = None) -> Path:
    """Return the folder of the store's file; for a server, the folder of the default store."""
    where = url or setting(STORE) or DEFAULT_STORE
    is_file = not where.lower().startswith("postgres")
    return Path(where.removeprefix("sqlite:///") if is_file else DEFAULT_STORE).parent


def find_run(store: "Store", name: str) -> "RunRow":
    """Return a run by its id (or a prefix of it), its name, a tag, or how recent it is.

    ``last`` is the newest run and ``last~1`` the one before it, not counting the runs of
    calibrations and probes. If several runs have the name or tag, the newest is returned.
    """
    if (aged := _AGED.fullmatch(name)) is not None:
        return _aged_run(store, int(aged[1] or 0), name)
    exact = store.run(name)
    if exact is not None:
        return exact
    if (labeled := _labeled_run(store, name)) is not None:
        return labeled
    found = store.find_runs(name) if name else ()
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(run.id for run in found[:_MANY])
        raise InputError(f"several runs start with this: {ids}", "give more of the id", name)
    raise InputError("no such run", "`jurybox runs` lists them", name)


def _aged_run(store: "Store", back: int, name: str) -> "RunRow":
    """Return the run that is ``back`` runs older than the newest."""
    own = store.runs(back + 1, without=HELPER_RUN)
    if len(own) > back:
        return own[back]
    if not own:
        raise InputError("the store has no runs", "run a suite first", name)
    count = "is only 1 run" if len(own) == 1 else f"are only {len(own)} runs"
    raise InputError(f"there {count}", "`jurybox runs` lists them", name)


def _labeled_run(store: "Store", label: str) -> "RunRow | None":
    """Return the newest run with this name; without any, the newest one with this tag."""
    tagged = None
    for row in store.labeled_runs(label) if _LABEL.fullmatch(label) else ():
        metadata = msgspec.json.decode(row.metadata)
        if metadata.get("name") == label:
            return row
        if tagged is None and label in metadata.get("tags", ()):
            tagged = row
    return tagged


def telemetry_signals() -> tuple[str, ...]:
    """Return the signals enabled by OpenTelemetry's standard variables; none by default.

    `.env` is ignored because the exporters, which read the other variables, ignore it.
    """
    wanted: list[str] = []
    for signal in ("traces", "metrics", "logs"):
        own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
        address = own or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        if address and os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp") == "otlp":
            wanted.append(signal)
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return () if off else tuple(wanted)


_LANGFUSE_CLOUD: Final = "https://cloud.langfuse.com"


def langfuse_client() -> "LangfuseClient":
    """Return a client for the Langfuse project that the environment names."""
    from jurybox.integrations.langfuse_client import LangfuseClient
    from jurybox.models.model_errors import SecretMask, quoted

    public, secret = setting(LANGFUSE_PUBLIC_KEY), setting(LANGFUSE_SECRET_KEY)
    for name, key in {LANGFUSE_PUBLIC_KEY: public, LANGFUSE_SECRET_KEY: secret}.items():
        if key is None:
            raise InputError(f"{name} is not set", "set it to the key of your project", "langfuse")
    keys = (public or "", secret or "")
    # The keys are masked in the encoded form of the Authorization header too.
    mask = SecretMask((*keys, b64encode(":".join(keys).encode()).decode()))
    address = setting(LANGFUSE_BASE_URL) or setting(LANGFUSE_HOST) or _LANGFUSE_CLOUD
    return LangfuseClient(
        address,
        public_key=keys[0],
        secret_key=keys[1],
        hide=lambda text: quoted(mask.text(text), keys),
    )


DEFAULT_JUDGE_NOTICE = (
    "no judge was named, so the embedded {name} is used; it is small: see `jurybox model list`"
)
"""The notice that the embedded judge is used."""


def embedded_judge() -> str | None:
    """Return the embedded judge's name; None if its model or runtime isn't installed.

    The model takes a gigabyte and is downloaded only on request.
    """
    entry = files.default_judge()
    path = files.path_of(entry, models_folder())
    there = files.installed_runtime() is not None and path.is_file()
    return f"local/{entry.name}" if there else None


def pull_hint() -> str:
    """Return the commands that install the embedded judge."""
    extra = "" if files.installed_runtime() else '`pip install "jurybox[local]"` and '
    size = files.format_bytes(files.default_judge().bytes)
    return f"{extra}`jurybox model pull` ({size})"


def default_judge(why: str | None = None, where: str = "") -> str:
    """Return the embedded judge's name; if it isn't installed, say how to get or name a judge.

    ``why`` says why a judge is needed.
    """
    name = embedded_judge()
    if name is not None:
        return name
    hint = "name a model, such as `openai/gpt-4.1-2025-04-14`"
    problem = "no judge was given" + (f", and {why}" if why else "")
    raise InputError(problem, f"{hint}, or run {pull_hint()} to use the embedded one", where)
