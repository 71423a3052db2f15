"""Gates on metrics of bias."""

import pytest

from jurybox.calibration.bias_results import BiasMetric, check_bias_gates, read_gates, unmeasured
from jurybox.errors import InputError

CONSISTENCY = BiasMetric(name="position.swap_consistency", value=0.9, n=20, samples=20)
UNKNOWN = unmeasured("verbosity.correlation", "the run scores no single responses")
METRICS = {metric.name: metric for metric in (CONSISTENCY, UNKNOWN)}


def test_a_metric_that_cant_be_told_fails_and_says_why() -> None:
    gates = read_gates(["verbosity.correlation <= 0.5", "injection.flattery.change <= 0.1"])
    told, probed = check_bias_gates(gates, METRICS)
    assert (told.passed, told.value) == (False, None)
    assert told.reason == "the run scores no single responses"
    assert not probed.passed
    assert "--probe" in (probed.reason or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("position.swap_consistency", "not a comparison"),
        ("position.swap_consistency => 0.9", "use `>=`"),
        ("position.swap_consistency >= 90%", "write 0.9"),
        (">= 0.9", "not a comparison"),
        ("", "not a comparison"),
    ],
)
def test_what_is_no_gate_is_refused_with_how_to_mend_it(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read_gates([text])
    assert "metric >=" not in str(refused.value)
