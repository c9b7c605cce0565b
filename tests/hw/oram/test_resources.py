"""The estimate of resources against what Yosys counts, block by block."""

import pytest

from hw.oram.config import OramConfig
from hw.oram.resources import blocks, estimate

#: How many there are of each part, and LUT, FF and block RAMs of one, by ``loomwork resources --engine oram
#: FILE`` for each ``value_bytes``.
COUNTED = {
    8: {
        "loomwork_oram": (1, 9_513, 13_846, 30),
        "answers": (1, 2_529, 2_571, 0),
        "aes_lane": (12, 128, 129, 0),
        "aes_last_round": (12, 640, 128, 0),
        "aes_round": (108, 723, 128, 0),
        "gf_products": (12, 4_299, 1_701, 0),
        "buckets": (1, 6_182, 8_410, 0),
        "bucket_read_port": (8, 819, 1_310, 0),
        "bucket_write_port": (8, 240, 740, 0),
        "keys": (1, 4_862, 8_928, 0),
        "opener": (1, 3_035, 2_840, 0),
        "position": (1, 10_037, 10_190, 31),
        "queries": (1, 3_281, 2_780, 4),
        "records": (1, 5_504, 4_071, 12),
        "record_read_port": (8, 1_093, 1_890, 8),
        "record_write_port": (8, 240, 740, 0),
        "sealer": (1, 3_614, 3_475, 0),
        "stage": (1, 44_937, 50_379, 4),
        "touch": (1, 5_267, 6_809, 4),
    },
    64: {
        "loomwork_oram": (1, 9_616, 13_996, 72),
        "answers": (1, 2_987, 2_578, 0),
        "aes_lane": (11, 128, 129, 0),
        "aes_last_round": (11, 640, 128, 0),
        "aes_round": (99, 723, 128, 0),
        "gf_products": (12, 4_299, 1_701, 0),
        "buckets": (1, 6_149, 8_402, 0),
        "bucket_read_port": (8, 819, 1_310, 0),
        "bucket_write_port": (8, 240, 740, 0),
        "keys": (1, 4_881, 8_931, 0),
        "opener": (1, 3_060, 2_846, 0),
        "position": (1, 6_938, 5_905, 27),
        "queries": (1, 4_819, 3_123, 4),
        "records": (1, 6_100, 4_095, 41),
        "record_read_port": (8, 1_124, 1_907, 15),
        "record_write_port": (8, 253, 740, 0),
        "sealer": (1, 3_628, 3_485, 0),
        "stage": (1, 40_050, 47_562, 30),
        "touch": (1, 4_856, 6_742, 3),
    },
}
#: Multipliers of all.
DSP = {8: 0, 64: 5}
_AES = {"aes_lane": 1, "aes_last_round": 1, "aes_round": 9}
#: Parts of each block, and how many of them where other blocks have some, too.
PARTS = {
    "opening and sealing of pages": {"opener": 1, "sealer": 1, "aes": 8, "gf_products": 8},
    "opening and sealing of commands": {"queries": 1, "answers": 1, "aes": 2, "gf_products": 2},
    "keys": {"keys": 1, "gf_products": 2},
    "position map": {"position": 1},
    "stage": {"stage": 1},
    "gates": {"touch": 1},
    "buckets in HBM": {"buckets": 1, "bucket_read_port": 8, "bucket_write_port": 8},
    "records in HBM": {"records": 1, "record_read_port": 8, "record_write_port": 8},
    "ports to the host": {"loomwork_oram": 1},
}


def counted(value_bytes, parts):
    """Give LUT, FF and block RAMs of so many of each part."""
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
    assert total.dsp == DSP[value_bytes]


def test_blocks_add_up_and_grow_with_what_makes_them():
    config = OramConfig()
    assert estimate(config).lut == sum(block.lut for block in blocks(config).values())
    assert (
        estimate(OramConfig(aes_lanes=1)).lut < estimate(config).lut < estimate(OramConfig(touch="both")).lut
    )
