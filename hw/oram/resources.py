"""FPGA resources of the oblivious map's kernel, block by block: an estimate that errs on the high side."""

from __future__ import annotations

from hw.board.resources import Resources
from hw.oram.config import BEAT_BYTES, OramConfig

# LUT and FF of pages, commands, draws and stage are fitted to what Yosys counts, by `synth_xilinx -family
# xcup -flatten` (`tests/hw/oram/test_resources.py`), with a tenth more for replication and for what placement
# leaves unpacked; keys are as `hw.oram.core.crypto` counts them. The other blocks are assumed, and the stage
# is counted for values of 8 bytes only.

# An AES pipeline with its products of the hash; opening or sealing besides; the schedule of a key, and the
# powers of a hash key.
_LANE_LUT, _LANE_FF = 13000, 3400
_PAGE_LUT, _PAGE_FF = 4000, 3800
_FRONT_LANE_LUT, _FRONT_LANE_FF = 9000, 2000
_SCHEDULE_LUT, _SCHEDULE_FF = 900, 2100
_POWER_LUT, _POWER_FF = 5700, 2600
# The position map and the stage, by label.
_POSITION_LUT, _POSITION_FF = 11000, 9000
_STAGE_LUT, _STAGE_FF, _STAGE_BRAM = 50000, 55500, 16
# Gates and counters; a port to HBM and one to the host.
_TOUCH_LUT, _TOUCH_FF = 8000, 8000
_HBM_PORT_LUT, _HBM_PORT_FF, _HBM_PORT_BRAM = 2500, 3000, 9
_HOST_PORT_LUT, _HOST_PORT_FF, _HOST_PORT_BRAM = 6000, 8000, 20
#: Bits of a word of a 36-Kibit block RAM at its widest, when it has 512 of them.
_RAM_BITS, _RAM_WORDS = 72, 512


def blocks(config: OramConfig) -> dict[str, Resources]:
    """Estimate each block of a kernel."""
    labels, lanes = config.label_count, config.aes_lanes
    ports = config.position_ports + config.record_ports
    # The stage keeps values of all operations that may be looked for in its log.
    log = -(-8 * config.value_bytes // _RAM_BITS) * -(-config.window // _RAM_WORDS)
    page = -(-8 * BEAT_BYTES // _RAM_BITS)
    pages = page * -(-config.inflight * labels * config.page_beats // _RAM_WORDS)
    return {
        "opening and sealing of pages": _resources(
            2 * (_PAGE_LUT + lanes * _LANE_LUT), 2 * (_PAGE_FF + lanes * _LANE_FF), 2 * page
        ),
        "opening and sealing of commands": _resources(
            2 * (_PAGE_LUT + _LANE_LUT), 2 * (_PAGE_FF + _LANE_FF), page
        ),
        "permutation and draws": _resources(
            config.front_lanes * _FRONT_LANE_LUT, config.front_lanes * _FRONT_LANE_FF
        ),
        "keys": _resources(4 * _SCHEDULE_LUT + 2 * _POWER_LUT, 4 * _SCHEDULE_FF + 2 * _POWER_FF),
        "position map": _resources(labels * _POSITION_LUT, labels * _POSITION_FF, 4),
        "stage": _resources(labels * _STAGE_LUT, labels * _STAGE_FF, _STAGE_BRAM + 2 * log),
        "gates": _resources(labels * _TOUCH_LUT, labels * _TOUCH_FF, 8),
        "ports to HBM": _resources(ports * _HBM_PORT_LUT, ports * _HBM_PORT_FF, ports * _HBM_PORT_BRAM),
        "ports to the host": _resources(
            2 * _HOST_PORT_LUT, 2 * _HOST_PORT_FF, 2 * _HOST_PORT_BRAM + 2 * pages
        ),
    }


def estimate(config: OramConfig) -> Resources:
    """Add up the blocks."""
    parts = [dict(block.items()) for block in blocks(config).values()]
    return Resources(**{name: sum(part[name] for part in parts) for name in parts[0]})


def _resources(lut: float, ff: float, bram36: int = 0) -> Resources:
    return Resources(lut=int(lut), ff=int(ff), dsp=0, bram36=bram36, uram=0)
