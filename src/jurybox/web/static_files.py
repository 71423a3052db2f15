"""Our own scripts and styles, read once: what a request names is only ever looked up."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from jurybox.reporting.html.render import style_sheet
from jurybox.web.refusals import Refusal

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    body: bytes
    kind: str
    tag: str


@cache
def static_files() -> dict[str, StaticFile]:
    """Return every file that is served, by its name."""
    found: dict[str, StaticFile] = {}
    for file in files("jurybox.web").joinpath("static").iterdir():
        kind = _KINDS.get(f".{file.name.rpartition('.')[2]}")
        if kind is not None:
            _add(found, file.name, file.read_bytes(), kind)
    # The report has it inlined; here it is a file like the others.
    _add(found, "report.css", style_sheet().encode(), _KINDS[".css"])
    return found


def _add(found: dict[str, StaticFile], name: str, body: bytes, kind: str) -> None:
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    found[name] = StaticFile(body, kind, tag)


def static_file(request: Request) -> Response:
    """Answer with a file of ours."""
    file = static_files().get(request.path_params["name"])
    if file is None:
        raise Refusal(404)
    headers = {"ETag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.kind, headers=headers)
