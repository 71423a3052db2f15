"""The API's own description (OpenAPI 3.1), made from the endpoints."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from jurybox import __version__
from jurybox.web.api.registry import Endpoint

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["problem", "mend", "where"],
            "additionalProperties": False,
            "properties": {
                "problem": {"type": "string", "description": "What is wrong."},
                "mend": {"type": "string", "description": "How to mend it."},
                "where": {"type": "string", "description": "Where it is wrong; may be empty."},
            },
        }
    },
}
_REFUSED: Final = {
    "400": "A value can't be one.",
    "403": "Another site has a browser ask for it, or it doesn't come from a page of this server.",
    "401": "A token is needed, or it is another one.",
    "404": "There is no such thing.",
    "405": "It is asked for in another way.",
    "421": "The server isn't known by the name in the Host header.",
    "503": "The store can't be read.",
}
_WRITING: Final = {
    "408": "It came too slowly.",
    "413": "It is too large.",
    "415": "It is no JSON.",
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the description of all endpoints."""
    types = [each.gives for each in endpoints if not isinstance(each.gives, dict)]
    types += [each.takes for each in endpoints if each.takes is not None]
    refs, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(map(_key, types), refs, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        operation = _operation(each, schemas)
        paths.setdefault(f"/api{each.path}", {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jurybox",
            "version": __version__,
            "description": "The runs of a store, as its pages show them.",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _key(kind: object) -> str:
    return repr(kind)


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    gives = endpoint.gives
    schema: Any = schemas.get(_key(gives), gives)
    refused = _REFUSED | (_WRITING if endpoint.method == "POST" else {})
    if not endpoint.missing:
        refused.pop("404")
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.about,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": schema}
                for name, schema in endpoint.names.items()
            ),
            *(each.document() for each in endpoint.query),
        ],
        "responses": {
            "200": {"description": "The answer.", "content": _json(schema)},
            **{
                status: {
                    "description": why,
                    "content": _json({"$ref": "#/components/schemas/Error"}),
                }
                for status, why in refused.items()
            },
        },
    }
    if endpoint.takes is not None:
        body = _json(schemas[_key(endpoint.takes)])
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _json(schema: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON schema
    return {"application/json": {"schema": schema}}
