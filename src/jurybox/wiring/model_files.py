"""The embedded models on this machine, as the settings and the environment have it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jurybox.models.local import files
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from jurybox.models.local.hub import HubOptions


def models_folder() -> Path:
    """Return the folder of models that all projects of this user share."""
    return files.models_folder(read_settings().models, os.environ)


def hub_options() -> "HubOptions":
    """Return where the hub is, and the proxy that leads there."""
    from jurybox.models.local.hub import URL, HubOptions
    from jurybox.models.proxies import Proxies

    url = read_settings().hub or URL
    return HubOptions(url=url, proxies=Proxies.from_environment(os.environ))
