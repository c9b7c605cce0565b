"""FPGA resources of the oblivious map's kernel by block: an estimate on the high side."""

import functools
import math
import operator

from hw.board.resources import ULTRA_WORDS, Gates, Resources, rams
from hw.lib.fifo import SHALLOW_DEPTH
from hw.oram.config import BEAT_BYTES, BUCKET_BYTES, RECORD_HEADER_BYTES, OramConfig
from hw.oram.core.crypto.aes_lane import BLOCK_BITS
from hw.oram.core.crypto.config import LUT_DEPTH
from hw.oram.core.crypto.page_seal import PageSeal
from hw.oram.core.layouts import HBM_BEAT_BYTES, bucket_beat_layout, query_layout
from hw.oram.core.pages.buffer import PageBuffer
from hw.oram.core.pages.opener import page_shape
from hw.oram.core.position.log import BLOCK_PLACES, kept_layout
from hw.oram.core.position.lookahead import TABLES, turn_layout
from hw.oram.core.stage.writer import record_write_layout

# LUT and FF are fitted to `loomwork resources --engine oram` for values of 8 and 64 bytes. Some 7 % are added
# for replication and for LUTs that placement leaves unpacked (docs/oram.md,
# `tests/hw/oram/test_resources.py`). Twice the position map, stage and admission for a second label is an
# assumption.

#: An AES pipeline, and the products of a hash.
_AES, _PRODUCTS = Gates(7800, 1500), Gates(4600, 1810)
#: The logic around the pipelines: of pages that are opened and sealed, of commands and responses, of keys.
_OPENER, _SEALER = Gates(3300, 3100), Gates(3900, 6600)
_QUERIES, _ANSWERS, _KEYS = Gates(4850, 3300), Gates(3100, 5000), Gates(5300, 9600)
#: The position map, and an operation of its log.
_POSITION, _POSITION_OPERATION = Gates(5200, 7300), Gates(20, 43)
#: The stage, an operation of its window, and an item of its overflow store.
_STAGE, _STAGE_OPERATION, _STAGE_ITEM = Gates(14000, 15000), Gates(29, 60), Gates(78, 119)
#: The admission, and an operation between issue and admission.
_ADMISSION, _ADMISSION_OPERATION = Gates(300, 1700), Gates(31, 46)
_PAGE_BUFFER = Gates(700, 1150)
#: Ports to HBM of the position map and of records, and the logic around them; a queue in block RAM has more
#: registers at its output.
_BUCKET_QUEUE = Gates(0, 2000)
_RECORD_QUEUE = Gates(0, 780)
_BUCKETS, _BUCKET_PORT = Gates(5500, 6000), Gates(2010, 3250)
_RECORDS, _RECORD_PORT = Gates(10800, 4400), Gates(2020, 3450)
#: Ports to the host, registers, counters.
_HOST = Gates(10200, 19550)
#: Multipliers where lines are no power of two, of records and of pages.
_RECORD_DSP, _PAGE_DSP = Gates(dsp=3), Gates(dsp=2)
#: Block RAMs of small queues.
_SMALL = 5
#: Bits and words of half of a block RAM.
_RAM_SHAPES = ((36, 512), (18, 1024), (9, 2048))


def blocks(config: OramConfig) -> dict[str, Resources]:
    """Estimate each block of a kernel."""
    labels, lanes, beat = config.label_count, config.aes_lanes, 8 * BEAT_BYTES
    items, row = config.issued * config.items, 8 * config.row_bytes
    values = (1 << config.operation_bits, config.window, config.overflow_entries, 2 * config.record_slots)
    stage_ram = sum(_ram(row, depth * config.value_rows) for depth in values)
    return {
        "opening and sealing of pages": _block(_OPENER + lanes * (_AES + _PRODUCTS), ram=_powers_ram(config))
        + sealer_estimate(config),
        "opening and sealing of commands": _block(
            _QUERIES + _AES + _PRODUCTS, ram=_ram(query_layout(config).size, config.accepted)
        )
        + answers_estimate(config),
        "permutation and draws": _block(config.front_lanes * _AES),
        "keys": _block(_KEYS + 2 * _PRODUCTS),
        "position map": _position(config),
        "stage": _block(
            labels * (_STAGE + config.window * _STAGE_OPERATION + config.overflow_entries * _STAGE_ITEM),
            ram=stage_ram + 1,  # of recent appends
        ),
        "admission of touches": _block(
            labels * (_ADMISSION + config.issued * _ADMISSION_OPERATION), ram=labels * _SMALL
        ),
        "pages in flight": _page_buffer(config),
        "buckets in HBM": _block(
            _BUCKETS
            + config.position_ports * _BUCKET_PORT
            + config.position_ports * (config.position.inflight > SHALLOW_DEPTH) * _BUCKET_QUEUE,
            ram=config.position_ports * _bucket_ram(config),
        ),
        "records in HBM": _block(
            _RECORDS
            + config.record_ports * _RECORD_PORT
            + config.record_ports * (config.record_sizes.read_lines > SHALLOW_DEPTH) * _RECORD_QUEUE
            + _multiplies(config.record_bytes) * _RECORD_DSP,
            ram=_ram(8 * RECORD_HEADER_BYTES, config.issued * labels)
            + _ram(config.record_index_bits, items)
            + config.record_ports * _record_ram(config),
            uram=rams(beat, items * config.record_beats, ULTRA_WORDS)
            + config.record_ports * _record_uram(config),
        ),
        "ports to the host": _block(
            _HOST + _multiplies(config.page_bytes) * _PAGE_DSP,
            ram=2 * _ram(beat, config.read_pages * config.page_beats)
            + 2 * _ram(beat, config.command_records * config.command_bytes // BEAT_BYTES),
        ),
    }


def estimate(config: OramConfig) -> Resources:
    """Add up the blocks."""
    return functools.reduce(operator.add, blocks(config).values())


def sealer_estimate(config: OramConfig) -> Resources:
    """Estimate the sealing of pages, `hw.oram.core.pages.sealer.PageSealer`."""
    shape = page_shape(config)
    depth = PageSeal.depth(shape)
    buffer = _ram(shape.beat_bits, depth) if depth > LUT_DEPTH else 0
    return _block(_SEALER + config.aes_lanes * (_AES + _PRODUCTS), ram=buffer + _powers_ram(config))


def answers_estimate(config: OramConfig) -> Resources:
    """Estimate the sealing of responses, `hw.oram.core.session.response_sealer.ResponseSealer`."""
    return _block(_ANSWERS + _AES + _PRODUCTS)


def _block(gates: Gates, *, ram: float = 0, uram: int = 0) -> Resources:
    """Round the block RAMs of a block."""
    return gates.with_rams(bram36=int(ram + 0.5), uram=uram)


def _powers_ram(config: OramConfig) -> float:
    """Return the block RAMs for powers of the hash key of long pages; those of short ones are in LUTs."""
    shape = page_shape(config)
    return shape.lanes * _ram(BLOCK_BITS, shape.beats) if shape.beats > LUT_DEPTH else 0


def _position(config: OramConfig) -> Resources:
    """Estimate the position map; long logs are in UltraRAM."""
    sizes, bits = config.position, kept_layout(config).size
    waiting = turn_layout(config).size if sizes.inflight > SHALLOW_DEPTH else 0
    ram = _ram(waiting, sizes.inflight)
    uram = 0
    if sizes.log > BLOCK_PLACES:
        uram = TABLES * rams(bits, sizes.log, ULTRA_WORDS)
    else:
        ram += TABLES * _ram(bits, sizes.log)
    gates = config.label_count * _POSITION + sizes.log * _POSITION_OPERATION
    return gates.with_rams(bram36=int(ram + 0.5), uram=uram)


def _bucket_ram(config: OramConfig) -> int:
    """Return the block RAMs of the queues of a port of the position map; short ones are in LUTs."""
    sizes = config.position
    queues = (
        (8 * BUCKET_BYTES, sizes.inflight),
        (bucket_beat_layout(config).size, sizes.write_beats),
        (sizes.write_cycles.bit_length(), sizes.write_beats),
    )
    reads, *writes = (_ram(bits, words) if words > SHALLOW_DEPTH else 0 for bits, words in queues)
    return math.ceil(reads) + math.ceil(sum(writes))


def _record_ram(config: OramConfig) -> int:
    """Return the block RAMs of the queues of a port of the records; short ones are in LUTs."""
    sizes, header = config.record_sizes, 8 * RECORD_HEADER_BYTES
    reads = ((header, sizes.read_lines), (header // 2, sizes.read_lines))
    writes = (
        (record_write_layout(config).size, sizes.write_beats),
        (sizes.settle_cycles.bit_length(), sizes.write_beats),
    )
    return sum(
        math.ceil(sum(_ram(bits, words) for bits, words in queues if words > SHALLOW_DEPTH))
        for queues in (reads, writes)
    )


def _record_uram(config: OramConfig) -> int:
    """Return the UltraRAMs of the two queues of beats of a port of the records; short ones are in LUTs."""
    words = config.record_sizes.read_lines * config.record_beats
    return 2 * rams(8 * HBM_BEAT_BYTES, words, ULTRA_WORDS) if words > SHALLOW_DEPTH else 0


def _page_buffer(config: OramConfig) -> Resources:
    """Count the memory of `PageBuffer`, and estimate the logic around it."""
    bits, words = 8 * BEAT_BYTES, PageBuffer.depth(config)
    if PageBuffer.ram_style(config) == "ultra":
        return _PAGE_BUFFER.with_rams(uram=rams(bits, words, ULTRA_WORDS))
    return _block(_PAGE_BUFFER, ram=_ram(bits, words))


def _ram(bits: int, words: int) -> float:
    """Return the block RAMs of a memory, counted in halves."""
    return min(-(-bits // width) * -(-words // depth) for width, depth in _RAM_SHAPES) / 2


def _multiplies(size: int) -> bool:
    return size & (size - 1) != 0
