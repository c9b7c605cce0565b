"""Failure probabilities of a configuration, and the refusal of sizes that do not suffice."""

from dataclasses import replace

from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.sizing.buckets import insertion_failure
from hw.oram.sizing.lists import LIFE_FAILURE, overflow_failure

#: Legal numbers of overflow entries.
_ENTRIES = (4, 8, 16, 32, 64, 128, 256)


def failures(config: OramConfig) -> dict[str, float]:
    """Return log2 of the failure probabilities, by names for reports.

    ``overflow_failure_log2``: 10^12 operations of the worst sequence stop the map.
    ``position_failure_log2``, ``record_failure_log2``: HBM misses a deadline of the position map, or of the
    records, in 10^12 operations, and stops the map.
    ``insertion_failure_log2``: an insertion into a map of nearly N keys is answered FULL. It stops nothing,
    and the host sees no difference.
    """
    return {
        "overflow_failure_log2": overflow_failure(config.list_shape),
        "position_failure_log2": config.position.failure,
        "record_failure_log2": config.record_sizes.failure,
        "insertion_failure_log2": insertion_failure(config),
    }


def check_overflow(config: OramConfig) -> None:
    """Refuse a map that stops within 10^12 operations with a probability of 2^-40 or more.

    `OramConfig` itself accepts it, so that tests can overflow a map of few keys.

    Raises `InputError` with sizes that suffice.
    """
    if _suffices(config):
        return
    slots, entries = config.record_slots, config.overflow_entries
    free = replace(config, interval_cycles=0)
    longer = next((n for n in range(slots + 1, 63) if _suffices(replace(free, list_slots=n))), None)
    more = next((n for n in _ENTRIES if n > entries and _suffices(replace(config, overflow_entries=n))), None)
    sizes = []
    if longer:
        sizes.append(f"0 or at least {longer} with overflow_entries {entries}")
    if more:
        sizes.append(f"{slots} with overflow_entries of at least {more}")
    legal = " or ".join(sizes) or "larger with more overflow_entries"
    failure = f"2^{overflow_failure(config.list_shape):.0f}"
    life = f"so that the map stops within 10^12 operations with less than 2^-40 (here {failure})"
    raise InputError("list_slots", slots, f"{legal}, {life}")


def _suffices(config: OramConfig) -> bool:
    return overflow_failure(config.list_shape) < LIFE_FAILURE
