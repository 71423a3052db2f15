"""``jurybox doctor``: what is there, what isn't, and how to get it."""

import importlib.metadata
from typing import Any

import pytest

from jurybox import __version__
from jurybox.settings import VARIABLES

SECRETS = ("sk-very-secret", "pass-very-secret", "key-very-secret")


def findings(done: Any, about: str) -> dict[str, Any]:  # noqa: ANN401 - what the fixture returns
    found = [each for each in done.json["findings"] if each["about"] == about]
    return {each["name"]: each for each in found}


def test_everything_is_fine_where_nothing_is_set(started: Any) -> None:  # noqa: ANN401
    done = started("doctor")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"jurybox {__version__}, ")
    for word in ("extras", "models", "store", "keys", "settings"):
        assert word in done.out
    assert len(done.out.splitlines()) < 25


def test_it_says_what_to_install_or_pull(jurybox: Any) -> None:  # noqa: ANN401
    done = jurybox("doctor", "--json")
    models = findings(done, "models")
    assert {each["state"] for each in models.values()} == {"absent"}
    assert models["smollm2-135m-instruct-q4_1"]["hint"].startswith("jurybox model pull smollm2")
    version = importlib.metadata.version("xllamacpp")
    assert findings(done, "extras")["local"]["value"] == f"xllamacpp {version}"


def test_keys_are_set_or_not_and_no_secret_is_shown(jurybox: Any) -> None:  # noqa: ANN401
    settings = {
        "OPENAI_API_KEY": SECRETS[0],
        "OPENAI_BASE_URL": f"http://me:{SECRETS[1]}@127.0.0.1/v1?key={SECRETS[2]}",
        "JURYBOX_STORE": f"postgresql://me:{SECRETS[1]}@127.0.0.1:1/runs?password={SECRETS[2]}",
    }
    for arguments in (("doctor",), ("doctor", "--json")):
        done = jurybox(*arguments, **settings)
        assert not [secret for secret in SECRETS if secret in done.out + done.err]
    keys = findings(jurybox("doctor", "--json", **settings), "keys")
    assert [keys[name]["value"] for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")] == [
        "set",
        "not set",
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("JURYBOX_RUBRICS", "nowhere", "no such folder"),
        ("JURYBOX_PRICES", "nowhere.json", "nowhere.json"),
        ("JURYBOX_STORE", "mysql://host/db", "begin the address of a store"),
    ],
)
def test_a_setting_that_names_what_is_broken_is_found(
    jurybox: Any,  # noqa: ANN401
    name: str,
    value: str,
    said: str,
) -> None:
    done = jurybox("doctor", "--json", **{name: value})
    assert done.code == 2
    (broken,) = [each for each in done.json["findings"] if each["state"] == "broken"]
    assert (broken["setting"], said in broken["value"]) == (name, True)
    assert done.json["broken"] is True
    assert said in jurybox("doctor", **{name: value}).out.replace("\n", " ")


def test_every_setting_that_is_set_is_listed(jurybox: Any) -> None:  # noqa: ANN401
    values = {"JURYBOX_REGION": "eu", "NO_COLOR": "1", "JURYBOX_PATIENCE": "5"}
    settings = findings(jurybox("doctor", "--json", **values), "settings")
    assert set(settings) == set(values) <= set(VARIABLES)
    assert settings["JURYBOX_REGION"]["value"] == "eu (from the environment)"


def test_a_store_that_is_there_is_opened(jurybox: Any) -> None:  # noqa: ANN401
    jurybox("init")
    jurybox("run", "suite.yaml")
    (store,) = findings(jurybox("doctor", "--json"), "store").values()
    assert store["value"].startswith("opens; the last run is ")
