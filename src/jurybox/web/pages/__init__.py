"""The pages that people look at, a module for each."""

from starlette.routing import BaseRoute, Route

from jurybox.web.pages.compare import compare_page
from jurybox.web.pages.rubrics import rubric_of_run, rubric_page, rubric_text, rubrics_page
from jurybox.web.pages.run import page_of_run, run_fragment
from jurybox.web.pages.runs import runs_page
from jurybox.web.pages.sample import sample_page, sample_text
from jurybox.web.pages.samples import samples_page

_PAGES = {
    "/": runs_page,
    "/compare": compare_page,
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


def routes() -> list[BaseRoute]:
    """Return the addresses of all pages."""
    return [Route(path, page, methods=["GET"]) for path, page in _PAGES.items()]
