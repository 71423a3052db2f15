"""Which runtime is used."""

import importlib.metadata

import pytest

from jurybox.errors import InputError
from jurybox.models.local import runtimes
from jurybox.models.local.runtimes import RUNTIMES, chosen, installed, loader


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Have these packages installed, and no others."""
    found: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in found:
            raise importlib.metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(runtimes.importlib.metadata, "version", version)
    return found


def test_the_faster_one_is_used_where_it_is_installed(versions: dict[str, str]) -> None:
    versions |= {"xllamacpp": "2.0"}
    assert str(chosen()) == "xllamacpp 2.0"
    versions |= {"llama-cpp-python": "0.3"}
    assert str(chosen()) == "llama-cpp-python 0.3"
    assert [each.name for each in installed()] == list(RUNTIMES)


def test_a_setting_wins(versions: dict[str, str]) -> None:
    versions |= {"xllamacpp": "2.0", "llama-cpp-python": "0.3"}
    assert chosen("xllamacpp").name == "xllamacpp"


def test_none_at_all_says_what_to_install(versions: dict[str, str]) -> None:
    assert not versions
    with pytest.raises(InputError, match=r"install `jurybox\[local\]`"):
        chosen()


def test_one_that_is_not_there_or_does_not_exist_is_said_so(versions: dict[str, str]) -> None:
    versions |= {"xllamacpp": "2.0"}
    with pytest.raises(InputError, match="JURYBOX_RUNTIME: `llama-cpp-python` isn't installed"):
        chosen("llama-cpp-python")
    with pytest.raises(InputError, match="did you mean `xllamacpp`"):
        chosen("xlamacpp")


@pytest.mark.parametrize("name", RUNTIMES)
def test_each_has_an_engine(versions: dict[str, str], name: str) -> None:
    versions[name] = "1"
    assert callable(loader(chosen(name)))
