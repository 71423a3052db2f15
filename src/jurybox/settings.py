"""The settings: environment variables, which only ``wiring`` reads."""

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
"""The variables of the settings; those of providers, proxies and OpenTelemetry aren't listed."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the environment variables."""

    rubrics: str | None = None  # the folder of rubrics that are found by name; None for the default
    traceback: bool = False  # show the traceback of an unexpected error
    color: bool = True  # use colors on a terminal
    prices: str | None = None  # a file with your own token prices; None for the default
    # Where runs are stored, a path or the URL of a database; None for the default.
    store: str | None = None
    region: str | None = None  # the region that jurybox runs in, stored with each run
    models: str | None = None  # the folder of embedded models; None for the default
    timeout: str | None = None  # seconds that a request to a model may take; None for the default
    # How many seconds an endpoint may keep failing before it is given up; None for the default.
    patience: str | None = None
    # The file of the client certificate; None without one.
    client_cert: str | None = None
    client_key: str | None = None  # the file of the certificate's key; None if they share one file
    token: str | None = None  # the token that opens the web pages; None to generate one
    # A file of certificate authorities to trust; None for the system's.
    ssl_cert_file: str | None = None
    requests_ca_bundle: str | None = None  # used if `ssl_cert_file` is not set
    langfuse_public_key: str | None = None  # the public key of a Langfuse project; None without one
    langfuse_secret_key: str | None = None  # the project's secret key
    langfuse_base_url: str | None = None  # the address of Langfuse; None for its cloud
    langfuse_host: str | None = None  # used if `langfuse_base_url` is not set

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
