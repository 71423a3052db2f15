"""Real language models for tests: they are pulled beforehand, never by a test."""

import os
from pathlib import Path

import pytest

from jurybox.models.local.files import ModelFile, find_model, models_folder

# Before any test has a home of its own.
_FOLDER = models_folder(os.environ.get("JURYBOX_MODELS"), os.environ)
SMALL = "smollm2-135m-instruct-q4_1"
"""Quick, and at chance as a judge: for plumbing only."""
JUDGE = "qwen2.5-coder-1.5b-instruct-q4_k_m"


def path_of(name: str) -> Path:
    """Return a model's file; a test that needs one that isn't there fails, and says how to fix."""
    path = _FOLDER / find_model(name).file
    if not path.is_file():
        pytest.fail(f"this test needs a real model: run `jurybox model pull {name}`")
    return path


def file_of(name: str) -> ModelFile:
    """Return a model's file with the hash that pulling it has checked."""
    return ModelFile(path=path_of(name), sha256=find_model(name).sha256, entry=find_model(name))
