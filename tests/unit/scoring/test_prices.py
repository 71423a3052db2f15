"""What tokens cost; what isn't known is unknown."""

from pathlib import Path

import msgspec
import pytest

from jurybox.app.view_run import run_cost
from jurybox.errors import InputError
from jurybox.models.providers import load_prices
from jurybox.sample import Usage, added_usage
from jurybox.scoring.prices import Price, cost
from jurybox.scoring.sample_result import ModelUse

PRICES = {
    "openai/m": Price(input=2.0, cached_input=0.5, output=8.0),
    "openai/m-2024-05-13": Price(input=4.0, output=10.0),
}
USAGE = Usage(input_tokens=1_000_000, output_tokens=500_000)


def test_the_cost_is_tokens_times_price() -> None:
    assert cost("openai/m", USAGE, PRICES) == 6.0


def test_cached_input_has_its_own_price_where_there_is_one() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=400_000)
    assert cost("openai/m", usage, PRICES) == pytest.approx(0.6 * 2 + 0.4 * 0.5)
    assert cost("openai/m-2024-05-13", usage, PRICES) == 4.0


def test_input_that_is_written_into_a_cache_has_its_own_price_too() -> None:
    prices = {"anthropic/m": Price(input=2.0, cached_input=0.2, written_input=2.5, output=8.0)}
    usage = Usage(
        input_tokens=1_000_000, output_tokens=0, cached_tokens=400_000, written_tokens=100_000
    )
    assert cost("anthropic/m", usage, prices) == pytest.approx(0.5 * 2 + 0.4 * 0.2 + 0.1 * 2.5)
    assert cost("openai/m", usage, PRICES) == pytest.approx(0.6 * 2 + 0.4 * 0.5)


def test_use_that_nobody_told_of_stays_untold_in_a_sum() -> None:
    told = Usage(input_tokens=5, output_tokens=1, written_tokens=3)
    assert added_usage([told, told]).written_tokens == 6
    assert added_usage([told, Usage()]).written_tokens == 3
    assert "written_tokens" not in msgspec.to_builtins(added_usage([Usage(), Usage()]))


def test_what_is_asked_in_a_batch_costs_its_share_of_all_prices() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    halved = {"openai/m": Price(input=2.0, cached_input=0.5, output=8.0, batch=0.5)}
    whole = cost("openai/m", usage, PRICES)
    assert whole is not None
    assert cost("openai/m", usage, halved) == whole
    assert cost("openai/m", usage, halved, batched=True) == pytest.approx(whole / 2)
    # A share that nobody gave is the whole: no discount is made up.
    assert cost("openai/m", usage, PRICES, batched=True) == whole


def test_every_bundled_price_says_what_a_batch_costs() -> None:
    assert {price.batch for price in load_prices().values() if price.input} == {0.5}


@pytest.mark.parametrize("usage", [USAGE, Usage()], ids=["tokens", "no tokens"])
def test_embedded_models_and_recordings_cost_nothing_and_functions_are_unknown(
    usage: Usage,
) -> None:
    prices = load_prices()
    assert cost("local/qwen", usage, prices) == cost("replay/x.jsonl", usage, prices) == 0
    assert cost("python/bot:answer", usage, prices) is None


def test_more_cached_than_there_was_is_never_a_negative_price() -> None:
    usage = Usage(input_tokens=10, output_tokens=0, cached_tokens=1000)
    assert cost("openai/m", usage, PRICES) == pytest.approx(10 * 0.5 / 1e6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai/m-2025-01-31", 6.0),
        ("openai/m-20250131", 6.0),
        ("openai/m@anything", 6.0),
        ("openai/m-2024-05-13", 9.0),
        ("openai/m-2024-05-13@x", 9.0),
        ("openai/m-mini", None),
        ("openai/m-mini-2025-01-31", None),
        ("anthropic/m", None),
        ("m", None),
    ],
)
def test_a_dated_release_has_the_price_of_its_family(name: str, expected: float | None) -> None:
    assert cost(name, USAGE, PRICES) == expected


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(input_tokens=5), Usage(output_tokens=5), Usage(cached_tokens=5)]
)
def test_unknown_tokens_have_an_unknown_price(usage: Usage) -> None:
    assert cost("openai/m", usage, PRICES) is None


def test_the_bundled_table_makes_sense() -> None:
    prices = load_prices()
    assert prices["openai/gpt-4.1"] == Price(
        input=2.0, cached_input=0.5, output=8.0, batch=0.5, date="2025-08-01"
    )
    paid = {name: price for name, price in prices.items() if not name.endswith("/")}
    for name, price in paid.items():
        assert name.startswith(("openai/", "anthropic/"))
        assert 0 < (price.cached_input or price.input) <= price.input < price.output
        assert price.date


def test_your_own_table_comes_first() -> None:
    Path("prices.json").write_text(
        '{"openai/gpt-4.1": {"input": 1, "output": 1}, "openai/mine": {"input": 0, "output": 0}}'
    )
    prices = load_prices("prices.json")
    assert cost("openai/gpt-4.1-2025-04-14", USAGE, prices) == 1.5
    assert cost("openai/mine", USAGE, prices) == 0
    assert "openai/gpt-4.1-mini" in prices


@pytest.mark.parametrize(
    "text", ["", "[]", '{"m": 1}', '{"m": {"input": "1", "output": 2}}', "\udcff"]
)
def test_a_table_that_is_none_is_refused(text: str) -> None:
    Path("prices.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"^prices\.json: not a valid price table"):
        load_prices("prices.json")


def test_a_misspelt_key_is_refused() -> None:
    Path("prices.json").write_text('{"m": {"input": 1, "output": 2, "cached": 3}}')
    with pytest.raises(InputError, match="cached"):
        load_prices("prices.json")


def test_a_table_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"nowhere\.json: can't be read \(No such file"):
        load_prices("nowhere.json")


def test_calls_that_all_failed_cost_nothing_only_if_the_price_is_known() -> None:
    def dollars(model: str, **more: int) -> float | None:
        used = ModelUse(model=model, role="judge", calls=3, **more)
        return run_cost([used], {"openai/x": Price(input=1.0, output=2.0)})["dollars"]

    assert dollars("openai/x", failed=3) == 0.0
    assert dollars("python/judges:first", failed=3) is None
    assert dollars("python/judges:first", unknown=3) is None
    assert dollars("python/judges:first", cached=3) == 0.0
