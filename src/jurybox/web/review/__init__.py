"""The queue in which reviewers score a run's samples."""

from typing import Final

from fastapi import APIRouter

from jurybox.web.review.review_pages import (
    agreement_page,
    case_page,
    gold_file,
    judged_page,
    name_page,
    next_page,
    submit,
    take_name,
    text_page,
    undo,
)

_SHOWN: Final = {
    "": next_page,
    "/name": name_page,
    "/agreement": agreement_page,
    "/gold.jsonl": gold_file,
    "/{number}": case_page,
    "/{number}/judged": judged_page,
    "/{number}/text/{part}": text_page,
}
_TAKEN: Final = {"/name": take_name, "/undo": undo, "/{number}": submit}

router: Final = APIRouter(prefix="/runs/{run}/review", include_in_schema=False)
for _path, _page in _SHOWN.items():
    router.add_api_route(_path, _page, methods=["GET", "HEAD"])
for _path, _page in _TAKEN.items():
    router.add_api_route(_path, _page, methods=["POST"])
