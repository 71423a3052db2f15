"""Compares the version of the model that answered with the requested one."""

import re
from functools import lru_cache
from typing import Final, Literal

from jurybox.text_format import printable

VersionCheck = Literal["verified", "unverified", "contradicted"]

_DATE = r"20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
# As providers write them: month and day (0613), year and month (2411), a number (001).
_SHORT = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])|2[2-9](?:0[1-9]|1[0-2])|00\d"
_DIGEST = r"sha256[:-][0-9a-f]{6,64}|[0-9a-f]{40}|[0-9a-f]{64}"
PINNED: Final = re.compile(
    rf"(?<!\d)(?:{_DATE})(?!\d)|[-:](?:{_SHORT})(?=$|[-:])|(?<![0-9a-f])(?:{_DIGEST})(?![0-9a-f])"
)
_NUMBER: Final = re.compile(r"v?\d+(?:[.-]\d+)*")
_COMMIT: Final = re.compile(r"(?=.*[a-f])[0-9a-f]{7,39}")
_FEWEST: Final = 4  # digits of a date, or of a part of one
_LONGEST: Final = 200
_OWN: Final = ("command/", "local/", "python/", "replay/")
"""The user's own files and code, whose versions a run records separately."""

_Version = tuple[Literal["date", "number", "digest"], str]


@lru_cache(maxsize=256)
def check_version(model: str, reported: str | None) -> VersionCheck | None:
    """Compare a model's name with the reported one; None if the model's name has no version.

    Even if the versions agree, a reported name that begins with the same word and then differs is a
    different model. Text that a gateway adds before the name or after the version, or a gateway's
    own alias, doesn't count as a difference.
    """
    name, version = _parts(model.lower())
    wanted = _versions(f"-{version or name}") or _plain_version(version)
    if model.startswith(_OWN) or not (version or wanted):
        return None
    # Folders before the name may contain dates.
    last = re.split(r"[/\\]", (reported or "").lower())[-1]
    rest = last.removeprefix(name.rpartition("/")[2])
    if version and re.match(rf"[-:@.]{re.escape(version)}(?![0-9a-z]|[.]\d)", rest):
        return "verified"
    found = _versions(last) - (_versions(name) if version else set())
    found = found or _plain_version(rest.lstrip("-:@"))
    comparable = [(one, other) for one in wanted for other in found if one[0] == other[0]]
    if any(_same(one[1], other[1]) for one, other in comparable):
        return _compared_names(name, last)
    return "contradicted" if comparable else "unverified"


@lru_cache(maxsize=256)
def contradiction(model: str, reported: str | None) -> str | None:
    """Return an error message if a different model or version answered, else None."""
    if check_version(model, reported) != "contradicted" or reported is None:
        return None
    provider, (name, version) = model.partition("/")[0], _parts(model)
    if re.search(r"20\d{6}", reported):
        version = version.replace("-", "")
    full = f"`{provider}/{name}-{version}`, or for " if version else ""
    answered = printable(" ".join(reported[:_LONGEST].split()))
    return (
        f"{model}: the provider answered with `{answered}`, another model or version; ask for "
        f"{full}`{provider}/{answered}`, or accept it with --allow-version-drift"
    )


def _parts(model: str) -> tuple[str, str]:
    name, _, version = model.partition("/")[2].rpartition("@")
    return (name, version) if name else (version, "")


def _versions(text: str) -> set[_Version]:
    """Return the dates, short versions and digests in a name, in comparable form."""
    found: set[_Version] = set()
    for each in PINNED.findall(text):
        plain = re.sub(r"^sha256.|-|^:", "", each)
        is_digest = each.startswith("sha256") or len(plain) > len("20250101")
        found.add(("digest" if is_digest else "date", plain))
    return found


def _plain_version(text: str) -> set[_Version]:
    """Return a version such as v2, a part of a date, or a commit."""
    if _NUMBER.fullmatch(text):
        plain = re.sub(r"[v.-]", "", text)
        return {("date" if len(plain) >= _FEWEST else "number", plain)}
    return {("digest", text)} if _COMMIT.fullmatch(text) else set()


def _same(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= _FEWEST and shorter in longer)


def _compared_names(name: str, reported: str) -> VersionCheck:
    """Compare the names of two models apart from their versions, which are the same."""
    (before, after), (found_before, found_after) = map(_around, (name.rpartition("/")[2], reported))
    shorter, longer = sorted((before, found_before), key=len)
    same_before = not shorter or re.search(rf"(?:^|[^a-z0-9]){re.escape(shorter)}$", longer)
    if same_before and (after.startswith(found_after) or found_after.startswith(after)):
        return "verified"
    words = [re.split(r"[^a-z]", each, maxsplit=1)[0] for each in (before, found_before)]
    return "contradicted" if words[0] == words[1] else "unverified"


def _around(name: str) -> tuple[str, str]:
    version = PINNED.search(name)
    if version is None:
        return name, ""
    return name[: version.start()].strip("-:@."), name[version.end() :]
