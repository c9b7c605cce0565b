"""Statistics that detect revealed pages which are not independent and uniform.

Every test returns a p-value, by normal approximations adequate for its counts. It also returns its power: the
smallest effect that it detects nine times in ten. A smaller leak stays undetected, and a passing trace proves
no more than that.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]

#: `FAMILY`: probability that traces without a leak fail any test. `POWER`: probability of detecting a leak.
FAMILY = 1e-6
POWER = 0.9
_NORMAL = NormalDist()


class LeakageFinding(NamedTuple):
    """Result of a test."""

    name: str  #: Of the test.
    p: float  #: Probability of the same effect or more without a leak.
    effect: float  #: The measured effect, relative to its expectation without a leak.
    least: float  #: The effect that is detected with the probability `POWER`.


def leaks(findings: Sequence[LeakageFinding]) -> list[LeakageFinding]:
    """Return the significant findings, by Bonferroni's correction for their number."""
    return [finding for finding in findings if finding.p < FAMILY / len(findings)]


def detectable(tests: int) -> float:
    """Return the z-score detected with the probability `POWER`, among ``tests`` two-sided tests."""
    return -_NORMAL.inv_cdf(FAMILY / tests / 2) + _NORMAL.inv_cdf(POWER)


def _two_sided(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))


def histogram(pages: Int, count: int, tests: int) -> LeakageFinding:
    """Compare the touches of each of ``count`` pages with uniform ones (chi-squared; Wilson, Hilferty)."""
    seen = np.bincount(pages.ravel(), minlength=count)
    expected = seen.sum() / count
    freedom = count - 1
    chi2 = float(((seen - expected) ** 2).sum() / expected)
    spread = 2 / (9 * freedom)
    z = ((chi2 / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    p = 0.5 * math.erfc(z / math.sqrt(2))
    # The non-centrality n w^2 that shifts chi-squared by as many deviations (Cohen's effect size w).
    least = math.sqrt(detectable(tests) * math.sqrt(2 * freedom) / seen.sum())
    return LeakageFinding("histogram", p, math.sqrt(max(0.0, chi2 - freedom) / seen.sum()), least)


def overlaps(pages: Int, count: int, lags: int = 64) -> list[LeakageFinding]:
    """Count repeated touches of a page 1 ... ``lags`` operations apart.

    ``pages``: [n, touches]. ``count``: pages of the host.
    """
    touches = pages.shape[1]
    findings = []
    for lag in range(1, lags + 1):
        early, late = pages[:-lag], pages[lag:]
        pairs = len(early) * touches**2
        found = sum(int((early[:, a] == late[:, b]).sum()) for a in range(touches) for b in range(touches))
        expected = pairs / count
        deviation = math.sqrt(expected * (1 - 1 / count))
        z = (found - expected) / deviation
        least = detectable(lags) * deviation / expected
        findings.append(
            LeakageFinding(f"overlap at lag {lag}", _two_sided(z), z * deviation / expected, least)
        )
    return findings


def serial_correlation(pages: Int, tests: int) -> LeakageFinding:
    """Correlate the first page of each operation with that of the previous one."""
    numbers = pages[:, 0] - pages[:, 0].mean()
    found = float((numbers[1:] * numbers[:-1]).sum() / (numbers**2).sum())
    size = math.sqrt(len(numbers))
    return LeakageFinding("serial correlation", _two_sided(found * size), found, detectable(tests) / size)


def same_distribution(one: NDArray[np.generic], other: NDArray[np.generic], tests: int) -> LeakageFinding:
    """Compare two samples (Kolmogorov and Smirnov; an upper bound of p where numbers repeat)."""
    ordered = [np.sort(one.ravel()), np.sort(other.ravel())]
    points = np.concatenate(ordered)
    shares = [np.searchsorted(sample, points, side="right") / len(sample) for sample in ordered]
    distance = float(np.abs(shares[0] - shares[1]).max())
    size = math.sqrt(len(ordered[0]) * len(ordered[1]) / len(points))
    # The effect needed by Massart's bound, and as much again for the samples' own deviation.
    takes, hides = math.sqrt(math.log(2 * tests / FAMILY) / 2), math.sqrt(math.log(1 / (1 - POWER)) / 2)
    least = (takes + hides) / size
    return LeakageFinding(
        "two-sample distance", min(1.0, 2 * math.exp(-2 * (distance * size) ** 2)), distance, least
    )


def same_mean(one: NDArray[np.generic], other: NDArray[np.generic], tests: int) -> LeakageFinding:
    """Compare the means of two samples, as fixed with random inputs in TVLA (Welch).

    The effect is in standard deviations (Cohen's d).  Samples that do not vary are compared exactly.
    """
    samples = [np.asarray(sample, np.float64).ravel() for sample in (one, other)]
    error = math.sqrt(sum(float(sample.var(ddof=1)) / len(sample) for sample in samples))
    difference = float(samples[0].mean() - samples[1].mean())
    spread = math.sqrt(sum(float(sample.var(ddof=1)) for sample in samples) / 2)
    if spread == 0:
        return LeakageFinding("mean", float(difference == 0), math.inf if difference else 0.0, 0.0)
    least = detectable(tests) * error / spread
    return LeakageFinding("mean", _two_sided(difference / error), difference / spread, least)


def page_findings(pages: Int, count: int) -> list[LeakageFinding]:
    """Run all tests on a sequence of touches, [operations, touches] of ``count`` pages."""
    lags = overlaps(pages, count)
    tests = len(lags) + 2
    return [histogram(pages, count, tests), serial_correlation(pages, tests), *lags]
