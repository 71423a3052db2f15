"""Who reviews, and how fast they want to go on: kept in their browser, nowhere else."""

from typing import Final
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from jurybox.calibration.review_input import read_reviewer
from jurybox.errors import InputError
from jurybox.web.guard import cookie

_NAME: Final = "jurybox_reviewer"
_STRAIGHT: Final = "jurybox_straight_on"


def reviewer_of(request: Request) -> str | None:
    """Return who reviews in this browser; None where nobody has said so."""
    given = request.cookies.get(_NAME, "")
    try:
        return read_reviewer(unquote(given, errors="strict"))
    except (InputError, UnicodeDecodeError):
        return None


def goes_straight_on(request: Request) -> bool:
    """Say whether the reviewer wants the next sample at once, and not the judge's verdict first."""
    return request.cookies.get(_STRAIGHT) == "1"


def remember_reviewer(response: Response, name: str) -> None:
    """Have the browser remember who reviews."""
    response.headers.append("Set-Cookie", cookie(_NAME, quote(name, safe="")))


def remember_pace(response: Response, *, straight: bool) -> None:
    """Have the browser remember how to go on."""
    response.headers.append("Set-Cookie", cookie(_STRAIGHT, "1" if straight else "0"))
