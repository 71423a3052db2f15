"""The distributions, against ``scipy.stats``."""

import pytest
from scipy import stats

from jurybox.statistics import distributions as d


def test_each_is_the_distribution_that_its_name_says() -> None:
    pairs = [
        (d.normal_quantile(0.975), stats.norm.ppf(0.975)),
        (d.normal_cdf(1.3), stats.norm.cdf(1.3)),
        (d.normal_tail(9.0), stats.norm.sf(9.0)),
        (d.t_quantile(0.975, 7), stats.t.ppf(0.975, 7)),
        (d.t_tail(2.2, 11.5), stats.t.sf(2.2, 11.5)),
        (d.binomial_tail(7, 10, 0.4), stats.binom.sf(6, 10, 0.4)),
        (d.binomial_tail(0, 10, 0.4), 1.0),
        (d.binomial_cdf(3, 10, 0.4), stats.binom.cdf(3, 10, 0.4)),
        (d.binomial_cdf(-1, 10, 0.4), 0.0),
        (d.chi2_tail(3.84, 1), stats.chi2.sf(3.84, 1)),
        (d.chi2_quantile(0.95, 4), stats.chi2.ppf(0.95, 4)),
        (d.beta_quantile(0.05, 2.5, 3), stats.beta.ppf(0.05, 2.5, 3)),
        (d.f_tail(4.1, 3, 12), stats.f.sf(4.1, 3, 12)),
    ]
    for mine, other in pairs:
        assert mine == pytest.approx(float(other), rel=1e-9)
