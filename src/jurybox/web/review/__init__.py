"""The queue in which people review a run's samples."""

from starlette.routing import BaseRoute, Route

from jurybox.web.review.agreement import agreement_page
from jurybox.web.review.api import endpoints
from jurybox.web.review.naming import name_page, take_name, take_pace
from jurybox.web.review.pages import case_page, judged_page, next_page, submit, text_page, undo
from jurybox.web.review.visits import seated

__all__ = ["endpoints", "routes"]

_DESK = "/runs/{run}/review"


def routes() -> list[BaseRoute]:
    """Return the addresses of the queue, those of single samples last."""
    return [
        Route(_DESK, seated(next_page), methods=["GET"]),
        Route(f"{_DESK}/name", name_page, methods=["GET"]),
        Route(f"{_DESK}/name", take_name, methods=["POST"]),
        Route(f"{_DESK}/pace", seated(take_pace), methods=["POST"]),
        Route(f"{_DESK}/undo", seated(undo), methods=["POST"]),
        Route(f"{_DESK}/agreement", agreement_page, methods=["GET"]),
        Route(_DESK + "/{number}", seated(case_page, "picked"), methods=["GET"]),
        Route(_DESK + "/{number}", seated(submit, "picked"), methods=["POST"]),
        Route(_DESK + "/{number}/judged", seated(judged_page, "picked"), methods=["GET"]),
        Route(_DESK + "/{number}/text/{part}", seated(text_page, "picked"), methods=["GET"]),
    ]
