"""The judge that is there without a key: used where one is needed and none was named."""

from jurybox.errors import InputError

NOTICE = "no judge was named, so the embedded {name} judges; it is small, see `jurybox model list`"
"""The one line that says so."""


def embedded_judge() -> str | None:
    """Return the embedded judge's name; None where it isn't on this machine.

    It is never fetched by itself: a gigabyte is nobody's default.
    """
    from jurybox.models.local.catalogue import default_judge
    from jurybox.models.local.files import path_of
    from jurybox.models.local.runtime import installed_runtime
    from jurybox.wiring.model_files import models_folder

    entry = default_judge()
    there = installed_runtime() is not None and path_of(entry, models_folder()).is_file()
    return f"local/{entry.name}" if there else None


def nobody_judges(problem: str, mend: str, where: str = "") -> InputError:
    """Say that a judge is needed, and both ways to have one."""
    from jurybox.models.local.catalogue import default_judge, shown_bytes
    from jurybox.models.local.runtime import installed_runtime

    extra = "" if installed_runtime() else '`pip install "jurybox[local]"` and '
    size = shown_bytes(default_judge().bytes)
    also = f"or run {extra}`jurybox model pull` ({size}) to have the embedded one"
    return InputError(problem, f"{mend}, {also}", where)
