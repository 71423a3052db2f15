"""Building models from their names."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.names import ModelName
from jurybox.settings import (
    ANTHROPIC_API_KEY,
    CLIENT_CERT,
    CLIENT_KEY,
    OPENAI_API_KEY,
    REQUESTS_CA_BUNDLE,
    SSL_CERT_FILE,
    TIMEOUT,
    Settings,
)
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from jurybox.models.connections import HttpOptions
    from jurybox.models.http import HttpClient
    from jurybox.models.local.files import ModelFile
    from jurybox.running.ports import Model


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
        match name.provider:
            case "openai":
                from jurybox.models.openai import OpenAIModel

                return OpenAIModel(name.name, self._openai())
            case "anthropic":
                from jurybox.models.anthropic import AnthropicModel

                return AnthropicModel(name.name, self._anthropic())
            case "python":
                from jurybox.models.function import load_function

                return load_function(name.name, self._folder)
            case "local":
                return self._local(name.name)
            case "replay":
                from jurybox.models.replay import ReplayModel

                return ReplayModel(Path(self._folder) / name.name)

    def _local(self, name: str) -> "Model":
        from jurybox.models.local.model import LocalModel

        return LocalModel(name, local_file(name, self._folder, self._settings))

    def _openai(self) -> "HttpClient":
        from jurybox.models.openai import BASE_URL, openai_client

        if "openai" not in self._clients:
            address = self._base_url or self._settings.openai_base_url or BASE_URL
            key = self._settings.openai_api_key
            if key is not None and urlsplit(address).username is not None:
                problem = f"the address holds a user name, and {OPENAI_API_KEY} is set too"
                raise InputError(problem, "use one of the two", "openai")
            self._clients["openai"] = openai_client(address, key, http_options(self._settings))
        return self._clients["openai"]

    def _anthropic(self) -> "HttpClient":
        from jurybox.models.anthropic import BASE_URL, anthropic_client

        if "anthropic" not in self._clients:
            key = self._settings.anthropic_api_key
            if key is None:
                problem = f"{ANTHROPIC_API_KEY} is not set"
                raise InputError(problem, "set it to your key", "anthropic")
            address = self._settings.anthropic_base_url or BASE_URL
            self._clients["anthropic"] = anthropic_client(
                key, address, http_options(self._settings)
            )
        return self._clients["anthropic"]


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
