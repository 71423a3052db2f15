"""What the API answers: each endpoint once, for its check, its answer and its document."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jurybox.web.guard import body_of, query_of
from jurybox.web.parameters import ANY_TEXT, Parameter, Schema, read_query
from jurybox.web.place import Place, place_of
from jurybox.web.refusals import Refusal
from jurybox.web.rendering import json_response

RUN: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": ANY_TEXT}
NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose values have been checked."""

    request: Request
    place: Place
    path: dict[str, Any]
    query: dict[str, Any]
    body: Any = None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked for.

    Attributes:
        path: its address under ``/api``, with names in braces.
        name: what the document calls it.
        about: what it answers, in a sentence.
        answer: returns the answer.
        gives: the type of the answer, or its JSON schema.
        method: how it is asked.
        names: the JSON schemas of the names in the path.
        query: what may stand behind the question mark.
        takes: the type of what is sent.
        missing: whether what the path names may be missing.

    """

    path: str
    name: str
    about: str
    answer: Callable[[Call], object]
    gives: Any
    method: Literal["GET", "POST"] = "GET"
    names: Mapping[str, Schema] = {}
    query: tuple[Parameter, ...] = ()
    takes: Any = None
    missing: bool = True

    def route(self) -> Route:
        """Return where it is answered."""
        return Route(f"/api{self.path}", self._respond, methods=[self.method], name=self.name)

    def _respond(self, request: Request) -> Response:
        return json_response(self.answer(self._call(request)))

    def _call(self, request: Request) -> Call:
        parameters = [
            Parameter(name=name, schema=schema, about="", needed=True)
            for name, schema in self.names.items()
        ]
        given = [(name, str(request.path_params[name])) for name in self.names]
        return Call(
            request=request,
            place=place_of(request),
            path=read_query(parameters, given, form=False),
            query=read_query(self.query, query_of(request), form=False),
            body=None if self.takes is None else self._body(request),
        )

    def _body(self, request: Request) -> object:
        try:
            return msgspec.json.decode(body_of(request), type=self.takes)
        except msgspec.DecodeError as error:
            raise Refusal(400, f"the body can't be read: {error}", "see the document") from None
