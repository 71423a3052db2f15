"""Libraries that load when a test first uses them, since every worker collects every test."""

import importlib
from typing import Any


class Lazily:
    """Stands for a module by its name; what looks for tests sees none in it."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._module), name)
