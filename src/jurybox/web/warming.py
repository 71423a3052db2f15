"""Getting ready while nobody has asked yet: the first page shall be as quick as the next."""

import contextlib

from starlette.applications import Starlette

from jurybox.errors import JuryboxError
from jurybox.web.pages.run import warm_newest
from jurybox.web.rendering import warm_up


def warm(app: Starlette) -> None:
    """Load what pages are made with, and look at the newest run."""
    warm_up()
    # Whoever asks for the page is told what is wrong.
    with contextlib.suppress(JuryboxError):
        warm_newest(app.state.place)
