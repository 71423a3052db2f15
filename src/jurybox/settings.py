"""The environment variables that configure jurybox, which only ``wiring`` reads."""

from typing import Final

RUBRICS: Final = "JURYBOX_RUBRICS"  # the folder of rubrics that are found by name
TRACEBACK: Final = "JURYBOX_TRACEBACK"  # show the traceback of an unexpected error
NO_COLOR: Final = "NO_COLOR"  # use no colors on a terminal
PRICES: Final = "JURYBOX_PRICES"  # a file with your own token prices
STORE: Final = "JURYBOX_STORE"  # where runs are stored, a path or the URL of a database
REGION: Final = "JURYBOX_REGION"  # the region that jurybox runs in, stored with each run
MODELS: Final = "JURYBOX_MODELS"  # the folder of embedded models
TIMEOUT: Final = "JURYBOX_TIMEOUT"  # seconds that a request to a model may take
PATIENCE: Final = "JURYBOX_PATIENCE"  # seconds that an endpoint may keep failing
CLIENT_CERT: Final = "JURYBOX_CLIENT_CERT"  # the file of the client certificate
CLIENT_KEY: Final = "JURYBOX_CLIENT_KEY"  # the file of its key; not set if they share one file
TOKEN: Final = "JURYBOX_TOKEN"  # noqa: S105 - opens the web pages; generated if not set
SSL_CERT_FILE: Final = "SSL_CERT_FILE"  # certificate authorities to trust, not the system's
REQUESTS_CA_BUNDLE: Final = "REQUESTS_CA_BUNDLE"  # the same, if SSL_CERT_FILE is not set
LANGFUSE_PUBLIC_KEY: Final = "LANGFUSE_PUBLIC_KEY"  # the key of a Langfuse project
LANGFUSE_SECRET_KEY: Final = "LANGFUSE_SECRET_KEY"  # noqa: S105 - its name, not a key
LANGFUSE_BASE_URL: Final = "LANGFUSE_BASE_URL"  # the address of Langfuse, if not its cloud
LANGFUSE_HOST: Final = "LANGFUSE_HOST"  # the same, if LANGFUSE_BASE_URL is not set
VARIABLES: Final = (
    *(TRACEBACK, NO_COLOR, RUBRICS, PRICES, STORE, REGION, MODELS, TIMEOUT, PATIENCE, TOKEN),
    *(CLIENT_CERT, CLIENT_KEY, SSL_CERT_FILE, REQUESTS_CA_BUNDLE),
    *(LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL, LANGFUSE_HOST),
)
"""All of these; those of providers, proxies and OpenTelemetry aren't listed."""
