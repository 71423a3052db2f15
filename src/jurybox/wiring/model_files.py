"""The embedded models on this machine, as the settings and the environment have it."""

import os
from pathlib import Path

from jurybox.models.local import files
from jurybox.wiring import read_settings


def models_folder() -> Path:
    """Return the folder of models that all projects of this user share."""
    return files.models_folder(read_settings().models, os.environ)
