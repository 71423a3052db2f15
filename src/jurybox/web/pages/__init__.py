"""The HTML pages, one module for each."""

from typing import Final

from fastapi import APIRouter

from jurybox.web.pages.compare_page import compare_page, side_by_side_page
from jurybox.web.pages.rubrics_page import rubric_of_run, rubric_page, rubric_text, rubrics_page
from jurybox.web.pages.run_page import page_of_run, run_fragment
from jurybox.web.pages.runs_page import runs_page
from jurybox.web.pages.sample_page import sample_page, sample_text
from jurybox.web.pages.samples_page import samples_page

_PAGES: Final = {
    "/": runs_page,
    "/compare": compare_page,
    "/side-by-side": side_by_side_page,
    "/rubrics": rubrics_page,
    "/rubrics/{rubric}": rubric_page,
    "/runs/{run}": page_of_run,
    "/runs/{run}/panels": run_fragment,
    "/runs/{run}/rubric": rubric_of_run,
    "/runs/{run}/rubric/text": rubric_text,
    "/runs/{run}/samples": samples_page,
    "/runs/{run}/samples/{number}": sample_page,
    "/runs/{run}/samples/{number}/text/{part}": sample_text,
}

router: Final = APIRouter(include_in_schema=False)
for _path, _page in _PAGES.items():
    router.add_api_route(_path, _page, methods=["GET", "HEAD"])
