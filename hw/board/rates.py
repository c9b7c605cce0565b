"""The rates of a board file beside its timing: predictions follow the first, simulations the second."""

from hw.board.board import Family, Memory
from hw.board.dram_timing import DramTiming
from hw.board.memory_timing import HbmTiming, HostTiming
from hw.errors import InputError

#: Least share of the sustained rate of timing that ``realistic`` has.  On Zynq it is a measurement through
#: the processing system's ports, which the timing does not limit.
_LEAST_SHARE: dict[Family, float] = {"alveo": 0.95, "zynq": 0.65}
#: Differences of rounding in board files.
_ROUNDING = 0.01


def check_rates(memory: Memory, family: Family) -> None:
    """Refuse rates of a memory that its timing does not move: only predictions would follow them.

    Raises `InputError`.
    """
    realistic, peak, timing = memory.realistic_bytes_per_second, memory.peak_bytes_per_second, memory.timing
    if isinstance(timing, HostTiming):
        if abs(realistic / timing.bytes_per_second - 1) > _ROUNDING:
            legal = f"{timing.bytes_per_second / 1e9:g} GB/s, the bytes_per_second of timing"
            raise InputError("realistic_bytes_per_second", realistic, f"{legal}: simulations follow it")
        return
    assert isinstance(timing, DramTiming)
    spacing_ck = max(timing.data_ck, timing.ccd_short_ck)
    pins = memory.channels * timing.granule_bytes * timing.command_clock_mhz * 1e6 / spacing_ck
    if abs(peak / pins - 1) > _ROUNDING:
        formula = "channels * granule_bytes * command_clock_mhz / data_ck (or ccd_short_ck, if longer)"
        legal = f"{pins / 1e9:g} GB/s, {formula} of timing: simulations follow it"
        raise InputError("peak_bytes_per_second", peak, legal)
    sustained = pins * (1 - timing.refresh_ck / timing.refresh_interval_ck)
    if isinstance(timing, HbmTiming) and timing.card_bytes_per_second:
        sustained = min(sustained, timing.card_bytes_per_second)
    least = _LEAST_SHARE[family]
    if not least <= realistic / sustained <= 1 + _ROUNDING:
        legal = f"from {least * sustained / 1e9:.4g} to {sustained / 1e9:.4g} GB/s, which timing sustains"
        raise InputError("realistic_bytes_per_second", realistic, f"{legal}: simulations follow it")
