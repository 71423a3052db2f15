"""Simulated: 95% intervals cover the true value as often as the documentation says.

The data are those of benchmarks/coverage.py, which prints the metrics for 2,000 data sets each.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "coverage.py"
SETS = 40


@pytest.fixture(scope="module")
def simulated() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_simulation", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "kind",
    [
        "share",
        "share_in_clusters",
        "mean",
        "mean_in_clusters",
        "corrected_share",
        "corrected_score",
        "corrected_in_clusters",
        "difference",
        "difference_of_shares",
    ],
)
def test_intervals_cover_at_all_rates_and_sizes(simulated: ModuleType, kind: str) -> None:
    simulate = getattr(simulated, kind)
    assert simulate in simulated.KINDS
    found = [
        simulated.coverage(simulate, rate, n, SETS)
        for rate in simulated.RATES
        for n in simulated.SIZES
    ]
    covered = np.array([share for share, _, _ in found])
    assert covered.mean() >= 0.93
    assert covered.min() >= 0.8


def test_intervals_of_a_quadratic_kappa_cover(simulated: ModuleType) -> None:
    """BCa covered 87% near 0.9."""
    assert len(simulated.KAPPAS) == 6
    found = [
        simulated.coverage(simulated.kappa_of(*each), 0.0, n, SETS)
        for each in simulated.KAPPAS.values()
        for n in simulated.SIZES
    ]
    covered = np.array([share for share, _, _ in found])
    assert covered.mean() >= 0.93
    assert covered.min() >= 0.8
