"""The estimate of resources against Yosys, block by block."""

import pytest

from hw.board import load_board
from hw.board.resources import Resources
from hw.oram.config import OramConfig
from hw.oram.regions import regions
from hw.oram.resources import blocks, estimate

#: Number of each part, and LUT, FF and block RAMs of one, by ``loomwork resources --engine oram FILE`` for
#: each ``value_bytes``. Of 64 bytes, FF of ``loomwork_oram`` and block RAMs of ``records`` follow from those
#: of 8.
COUNTED = {
    8: {
        "loomwork_oram": (1, 9_378, 18_720, 44),
        "answers": (1, 2_546, 4_326, 0),
        "aes_lane": (12, 128, 138, 0),
        "aes_last_round": (12, 640, 128, 0),
        "aes_round": (108, 715, 128, 0),
        "gf_products": (12, 4_299, 1_701, 0),
        "buckets": (1, 4_997, 5_513, 0),
        "bucket_read_port": (8, 1_445, 3_407, 15),
        "bucket_write_port": (8, 467, 1_465, 9),
        "keys": (1, 4_920, 8_987, 0),
        "opener": (1, 3_034, 2_893, 0),
        "page_buffer": (1, 646, 1_084, 0),
        "position": (1, 28_964, 59_966, 4),
        "queries": (1, 3_278, 2_811, 4),
        "records": (1, 9_614, 4_154, 5),
        "record_read_port": (16, 1_349, 2_500, 6),
        "record_write_port": (16, 495, 1_467, 5),
        "sealer": (1, 3_634, 6_226, 0),
        "stage": (1, 36_415, 58_142, 8),
        "touch": (1, 7_632, 12_752, 5),
    },
    64: {
        "loomwork_oram": (1, 8_648, 19_267, 72),
        "answers": (1, 3_069, 4_796, 0),
        "aes_lane": (11, 128, 138, 0),
        "aes_last_round": (11, 640, 128, 0),
        "aes_round": (99, 715, 128, 0),
        "gf_products": (12, 4_299, 1_701, 0),
        "buckets": (1, 4_887, 5_501, 0),
        "bucket_read_port": (8, 1_427, 1_533, 0),
        "bucket_write_port": (8, 425, 1_443, 5),
        "keys": (1, 4_905, 8_932, 0),
        "opener": (1, 3_045, 2_899, 0),
        "page_buffer": (1, 649, 1_087, 0),
        "position": (1, 9_035, 15_591, 31),
        "queries": (1, 4_826, 3_161, 4),
        "records": (1, 10_571, 4_163, 5),
        "record_read_port": (16, 1_387, 1_785, 0),
        "record_write_port": (16, 516, 1_482, 5),
        "sealer": (1, 3_630, 6_238, 0),
        "stage": (1, 26_735, 41_443, 31),
        "touch": (1, 3_751, 7_030, 4),
    },
}
#: Multipliers and UltraRAMs of all.
DSP, ULTRA = {8: 0, 64: 5}, {8: 176, 64: 144}
_AES = {"aes_lane": 1, "aes_last_round": 1, "aes_round": 9}
#: Parts of each block, and their number where other blocks have some, too.
PARTS = {
    "opening and sealing of pages": {"opener": 1, "sealer": 1, "aes": 8, "gf_products": 8},
    "opening and sealing of commands": {"queries": 1, "answers": 1, "aes": 2, "gf_products": 2},
    "keys": {"keys": 1, "gf_products": 2},
    "position map": {"position": 1},
    "stage": {"stage": 1},
    "admission of touches": {"touch": 1},
    "pages in flight": {"page_buffer": 1},
    "buckets in HBM": {"buckets": 1, "bucket_read_port": 8, "bucket_write_port": 8},
    "records in HBM": {"records": 1, "record_read_port": 16, "record_write_port": 16},
    "ports to the host": {"loomwork_oram": 1},
}


def counted(value_bytes, parts):
    """Return LUT, FF and block RAMs of a number of each part."""
    each = COUNTED[value_bytes]
    flat = {name: count for name, count in parts.items() if name != "aes"}
    flat |= {name: count * parts.get("aes", 0) for name, count in _AES.items()}
    return tuple(sum(count * each[name][at] for name, count in flat.items()) for at in (1, 2, 3))


@pytest.mark.parametrize("value_bytes", COUNTED)
def test_the_estimate_errs_on_the_high_side_by_little(value_bytes):
    config = OramConfig(value_bytes=value_bytes)
    found = blocks(config)
    parts = PARTS | {"permutation and draws": {"aes": config.front_lanes}}
    assert set(found) == set(parts)
    for name, (lut, ff, ram) in {name: counted(value_bytes, of) for name, of in parts.items()}.items():
        assert lut <= found[name].lut <= 1.2 * lut, name
        assert ff <= found[name].ff <= 1.15 * ff, name
        assert ram <= found[name].bram36 <= 1.1 * ram + 1, name
    total = estimate(config)
    lut, ff, ram = (sum(row[0] * row[at] for row in COUNTED[value_bytes].values()) for at in (1, 2, 3))
    assert lut <= total.lut <= 1.1 * lut
    assert ff <= total.ff <= 1.1 * ff
    assert ram <= total.bram36 <= 1.1 * ram
    assert (total.dsp, total.uram) == (DSP[value_bytes], ULTRA[value_bytes])


@pytest.mark.parametrize("value_bytes", COUNTED)
def test_each_die_holds_what_was_counted_of_its_parts(value_bytes):
    board = load_board("u55c")
    here, there = regions(OramConfig(value_bytes=value_bytes), board)
    lanes = OramConfig().aes_lanes
    sealers = {"sealer": 1, "answers": 1, "aes": 1 + lanes, "gf_products": 1 + lanes}
    assert set(there.parts) == {"body.sealer", "body.answers"}
    moved = counted(value_bytes, sealers)
    whole = (sum(row[0] * row[at] for row in COUNTED[value_bytes].values()) for at in (1, 2, 3))
    left = [have - gone for have, gone in zip(whole, moved, strict=True)]
    for region, found, ultra in ((here, left, ULTRA[value_bytes]), (there, moved, 0)):
        lut, ff, ram = found
        assert not Resources(lut=lut, ff=ff, dsp=DSP[value_bytes], bram36=ram, uram=ultra).over_shares(
            board.die
        ), region


def test_blocks_add_up_and_grow_with_what_makes_them():
    config = OramConfig()
    assert estimate(config).lut == sum(block.lut for block in blocks(config).values())
    assert (
        estimate(OramConfig(aes_lanes=1)).lut < estimate(config).lut < estimate(OramConfig(touch="both")).lut
    )
