"""The JSON API keeps to its own document, whatever it is asked."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings

from jurybox.storage.store import Store
from jurybox.web.app_state import ServeSettings
from jurybox.web.site import application
from lazily import Lazily
from pages_client import PagesClient
from stored_runs import MakeRun, answered, make_run, store

if TYPE_CHECKING:
    from schemathesis import Case

schemathesis = Lazily("schemathesis")

__all__ = ["make_run", "store"]

BOUNDED = settings(
    max_examples=settings.default.max_examples // 3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_answer_is_as_the_document_says(store: Store, make_run: MakeRun) -> None:
    make_run([answered(f"s{n}", f"answer {n}") for n in range(3)], run_id="0")
    said: list[str] = []
    app = application(ServeSettings(store=store, say=said.append))
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"Host": "127.0.0.1"})
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.method.upper() != "GET":
            continue  # a write needs what only a page gives it

        @given(case=operation.as_strategy())
        @BOUNDED
        def ask(case: "Case") -> None:
            nonlocal asked
            asked += 1
            # A run that is there, as often as not.
            if "run" in (case.path_parameters or {}) and asked % 2:
                case.path_parameters["run"] = "0"
            response = case.call(headers={"Host": "127.0.0.1"})
            # The document can't say which names a run has.
            if response.status_code != 400 or "there is no " not in response.text:
                case.validate_response(response)
            assert response.status_code < 500
            assert said == []

        ask()
    assert asked > 50


def test_the_document_names_every_endpoint_of_the_reference_and_nothing_else(store: Store) -> None:
    app = application(ServeSettings(store=store))
    document = PagesClient(app).get("/api/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    page = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    assert set(document["paths"]) == set(re.findall(r"^\| `(/api[^?`]*)", page, re.MULTILINE))
