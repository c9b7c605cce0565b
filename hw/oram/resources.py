"""FPGA resources of the oblivious map's kernel by block: an estimate on the high side."""

from __future__ import annotations

from hw.board.resources import Resources
from hw.lib.fifo import SHALLOW_DEPTH
from hw.oram.config import BEAT_BYTES, RECORD_HEADER_BYTES, OramConfig
from hw.oram.core.layouts import bucket_layout, query_layout
from hw.oram.core.position.lookahead import TABLES, turn_layout

# LUT and FF are fitted to `loomwork resources --engine oram` for values of 8 and 64 bytes. Some 7 % are added
# for replication and for LUTs that placement leaves unpacked (docs/oram.md,
# `tests/hw/oram/test_resources.py`). Twice the position map, stage and admission for a second label is an
# assumption.

#: An AES pipeline, and the products of a hash.
_AES, _PRODUCTS = (7800, 1500), (4600, 1810)
#: The logic around the pipelines: of pages, of commands and responses, of keys.
_PAGES, _COMMANDS, _KEYS = (7200, 6800), (7900, 6000), (5300, 9600)
#: The position map, and an operation of its window.
_POSITION, _POSITION_OPERATION = (6400, 4800), (31, 43)
#: The stage, an operation of its window, and an item of its overflow store.
_STAGE, _STAGE_OPERATION, _STAGE_ITEM = (19500, 16000), (82, 132), (110, 119)
_ADMISSION = (5800, 7400)
#: Ports to HBM of the position map and of records, and the logic around them.
_BUCKETS, _BUCKET_PORT = (6700, 9000), (1140, 2200)
_RECORDS, _RECORD_PORT = (6500, 4400), (1480, 2820)
#: Ports to the host, registers, counters.
_HOST = (8500, 15900)
#: Multipliers where lines are no power of two, of records and of pages.
_RECORD_DSP, _PAGE_DSP = 3, 2
#: Lines in the queue of a port to HBM, and small queues in block RAM.
_PORT_LINES, _SMALL = 32, 4
#: Bits and words of half of a block RAM.
_RAM_SHAPES = ((36, 512), (18, 1024), (9, 2048))


def blocks(config: OramConfig) -> dict[str, Resources]:
    """Estimate each block of a kernel."""
    labels, lanes, beat = config.label_count, config.aes_lanes, 8 * BEAT_BYTES
    items, row = config.inflight * config.items, 8 * config.row_bytes
    waiting = turn_layout(config).size if config.position_inflight > SHALLOW_DEPTH else 0
    position_ram = TABLES * _ram(bucket_layout(config).size, config.position_window)
    values = (1 << config.operation_bits, config.window, config.overflow_entries, 2 * config.list_slots)
    stage_ram = sum(_ram(row, depth * config.value_rows) for depth in values)
    return {
        "opening and sealing of pages": _sum((1, _PAGES), (2 * lanes, _AES), (2 * lanes, _PRODUCTS)),
        "opening and sealing of commands": _sum(
            (1, _COMMANDS), (2, _AES), (2, _PRODUCTS), ram=_ram(query_layout(config).size, config.accepted)
        ),
        "permutation and draws": _sum((config.front_lanes, _AES)),
        "keys": _sum((1, _KEYS), (2, _PRODUCTS)),
        "position map": _sum(
            (labels, _POSITION),
            (labels * config.position_window, _POSITION_OPERATION),
            ram=position_ram + _ram(waiting, config.position_inflight),
        ),
        "stage": _sum(
            (labels, _STAGE),
            (labels * config.window, _STAGE_OPERATION),
            (labels * config.overflow_entries, _STAGE_ITEM),
            ram=stage_ram,
        ),
        "admission of touches": _sum((labels, _ADMISSION), ram=labels * _SMALL),
        "buckets in HBM": _sum((1, _BUCKETS), (config.position_ports, _BUCKET_PORT)),
        "records in HBM": _sum(
            (1, _RECORDS),
            (config.record_ports, _RECORD_PORT),
            ram=_ram(beat, items * config.record_beats)
            + _ram(8 * RECORD_HEADER_BYTES, config.inflight * labels)
            + config.record_ports * (1 + _ram(beat, _PORT_LINES * config.record_beats)),
            dsp=_multiplies(config.record_bytes) * _RECORD_DSP,
        ),
        "ports to the host": _sum(
            (1, _HOST),
            ram=2 * _ram(beat, config.read_pages * config.page_beats)
            + 2 * _ram(beat, config.command_records * config.command_bytes // BEAT_BYTES),
            dsp=_multiplies(config.page_bytes) * _PAGE_DSP,
        ),
    }


def estimate(config: OramConfig) -> Resources:
    """Add up the blocks."""
    parts = [dict(block.items()) for block in blocks(config).values()]
    return Resources(**{name: sum(part[name] for part in parts) for name in parts[0]})


def _sum(*parts: tuple[int, tuple[int, int]], ram: float = 0, dsp: int = 0) -> Resources:
    """Add up LUT and FF of each kind of part, with block RAMs and multipliers."""
    lut, ff = (sum(count * each[at] for count, each in parts) for at in (0, 1))
    return Resources(lut=lut, ff=ff, dsp=dsp, bram36=int(ram + 0.5), uram=0)


def _ram(bits: int, words: int) -> float:
    """Return the block RAMs of a memory, counted in halves."""
    return min(-(-bits // width) * -(-words // depth) for width, depth in _RAM_SHAPES) / 2


def _multiplies(size: int) -> bool:
    return size & (size - 1) != 0
