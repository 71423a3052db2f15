"""The one place that builds things from settings.

What a function builds it imports itself, so that nobody pays for parts that a command doesn't use.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jurybox.errors import InputError
from jurybox.settings import RUBRICS, Settings

if TYPE_CHECKING:
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
