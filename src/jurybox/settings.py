"""The settings, each an environment variable; they are read in one place only, ``wiring``."""

from collections.abc import Mapping
from typing import Final

import msgspec

RUBRICS: Final = "JURYBOX_RUBRICS"
TRACEBACK: Final = "JURYBOX_TRACEBACK"
NO_COLOR: Final = "NO_COLOR"
PRICES: Final = "JURYBOX_PRICES"
STORE: Final = "JURYBOX_STORE"
REGION: Final = "JURYBOX_REGION"
MODELS: Final = "JURYBOX_MODELS"
TIMEOUT: Final = "JURYBOX_TIMEOUT"
PATIENCE: Final = "JURYBOX_PATIENCE"
CLIENT_CERT: Final = "JURYBOX_CLIENT_CERT"
CLIENT_KEY: Final = "JURYBOX_CLIENT_KEY"
TOKEN: Final = "JURYBOX_TOKEN"  # noqa: S105 - its name, not a token
SSL_CERT_FILE: Final = "SSL_CERT_FILE"
REQUESTS_CA_BUNDLE: Final = "REQUESTS_CA_BUNDLE"
LANGFUSE_PUBLIC_KEY: Final = "LANGFUSE_PUBLIC_KEY"
LANGFUSE_SECRET_KEY: Final = "LANGFUSE_SECRET_KEY"  # noqa: S105 - its name, not a key
LANGFUSE_BASE_URL: Final = "LANGFUSE_BASE_URL"
LANGFUSE_HOST: Final = "LANGFUSE_HOST"
_TEXTS: Final = {
    name.removeprefix("JURYBOX_").lower(): name
    for name in (
        *(RUBRICS, PRICES, STORE, REGION, MODELS, TIMEOUT, PATIENCE, TOKEN),
        *(CLIENT_CERT, CLIENT_KEY, SSL_CERT_FILE, REQUESTS_CA_BUNDLE),
        *(LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL, LANGFUSE_HOST),
    )
}
VARIABLES: Final = (TRACEBACK, NO_COLOR, *_TEXTS.values())
"""Every variable that jurybox reads, apart from those of providers of models."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set from outside.

    Attributes:
        rubrics: the folder of rubrics that can be called by name; None by default.
        traceback: show the traceback of an unexpected error.
        color: use colors on a terminal.
        prices: a file with your own prices of tokens; None by default.
        store: where runs are stored, a path or the URL of a database; None by default.
        region: where this runs, for the records of a run.
        models: the folder of embedded models; None by default.
        timeout: seconds that a request to a model may take; None for the default.
        patience: seconds that an endpoint may fail before it is given up; None for the default.
        client_cert: the file of the certificate that endpoints are shown; None for none.
        client_key: the file of its key; None where that is in the same file.
        token: the token of the pages; None to generate one.
        ssl_cert_file: a file of authorities to trust in place of the system's; None for those.
        requests_ca_bundle: the same under another name, which counts second.
        langfuse_public_key: the public key of a Langfuse project; None without one.
        langfuse_secret_key: its secret key.
        langfuse_base_url: the address of Langfuse; None for its cloud.
        langfuse_host: the same under another name, which counts second.

    """

    rubrics: str | None = None
    traceback: bool = False
    color: bool = True
    prices: str | None = None
    store: str | None = None
    region: str | None = None
    models: str | None = None
    timeout: str | None = None
    patience: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    token: str | None = None
    ssl_cert_file: str | None = None
    requests_ca_bundle: str | None = None
    langfuse_public_key: str | None = None
    langfuse_secret_key: str | None = None
    langfuse_base_url: str | None = None
    langfuse_host: str | None = None

    def __repr__(self) -> str:
        """Show nothing, because the settings contain keys."""
        return "Settings(...)"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings; a variable that is empty counts as not set."""
        texts = {field: environment.get(name) or None for field, name in _TEXTS.items()}
        return cls(
            traceback=environment.get(TRACEBACK, "") not in {"", "0"},
            color=not environment.get(NO_COLOR),
            **texts,
        )
