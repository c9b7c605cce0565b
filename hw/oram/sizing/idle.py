"""Deadlines in HBM of an operation that is alone: its reads find empty queues.

No other read is under way in its channels, and no write: earlier ones are answered, and its own come after
its reads. So a read waits for one refresh, and for the operation's other reads.

The longest read opens a row just before a refresh is due. The row stays open for 31 of HBM's cycles at least,
its closing takes 14, and the refresh 315: in all 120 cycles of 300 MHz. Records are read in the order of
touches, fresh headers behind them. Slower kernels wait for fewer cycles.
"""

from dataclasses import dataclass

from hw.oram.config import RECORD_HEADER_BYTES, OramConfig
from hw.oram.sizing.queues import READ_CYCLES

#: Cycles of a bucket's read that nothing delays, from the address to its last beat: 58, and a margin. Cycles
#: of a refresh behind its first row.
_UNLOADED, _REFRESH = 60, 120
#: Bytes of a beat at a port of HBM, beats of a bucket, and bytes of the rows of a pair of banks.
_PORT_BYTES, _BUCKET_BEATS, _ROW_BYTES = 32, 4, 2048
#: Cycles of a bucket's read at most.
_READ = _UNLOADED + _REFRESH


@dataclass(frozen=True, kw_only=True)
class IdleSizes:
    """Deadlines of an operation that is alone."""

    position_cycles: int  #: For its reads of the position map.
    #: ``touch_cycles``, ``head_cycles``: from the issue of a touch: for its reads of records, and for the
    #: first beat of its own.
    touch_cycles: int
    head_cycles: int


def idle_sizes(config: OramConfig) -> IdleSizes:
    """Return the sizes for calibrated HBM."""
    beats = config.record_bytes // _PORT_BYTES
    # Earlier records of the operation, each with its rows and beats.
    rows = 1 + (config.record_bytes - 1) // _ROW_BYTES
    before = (config.items - 1) * (rows * round(READ_CYCLES) + beats)
    # A head comes with the second beat of an odd record.
    # The keystream of an operation's second page waits for the first one's.
    head = _READ - (_BUCKET_BEATS - 2) + before + (config.label_count - 1) * config.page_cycles
    record = _READ - _BUCKET_BEATS + beats + (rows - 1) * round(READ_CYCLES) + before
    headers = config.label_count * RECORD_HEADER_BYTES // _PORT_BYTES
    # A header's bank may be that of the record, or of the other header.
    waits = config.label_count * round(READ_CYCLES)
    fresh = max(record + headers, record - beats + _BUCKET_BEATS + waits) if rows == 1 else record + waits
    return IdleSizes(
        position_cycles=_READ,
        touch_cycles=max(record, fresh),
        head_cycles=head,
    )
