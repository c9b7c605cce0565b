"""The estimate of resources against what Yosys counts, block by block."""

import pytest

from hw.oram.config import OramConfig
from hw.oram.resources import blocks, estimate

#: LUT and FF of an AES pipeline and of the products of a hash.
_AES, _PRODUCTS = (7_248, 1_409), (4_275, 1_701)


def added(*counts):
    return tuple(sum(n * count[at] for n, count in counts) for at in (0, 1))


#: Counts of blocks by value_bytes, each flattened but for the two above.
COUNTED = {
    64: {
        ("opening and sealing of pages",): added(
            (1, (3_051, 2_846)), (1, (3_628, 3_485)), (8, _AES), (8, _PRODUCTS)
        ),
        ("opening and sealing of commands", "permutation and draws"): added(
            (1, (4_816, 3_126)), (1, (2_987, 2_578)), (3, _AES), (2, _PRODUCTS)
        ),
        ("keys",): added((1, (4_870, 8_931)), (2, _PRODUCTS)),
    },
    8: {("stage",): (45_038, 50_379)},
}


@pytest.mark.parametrize("value_bytes", COUNTED)
def test_the_estimate_errs_on_the_high_side_by_little(value_bytes):
    found = blocks(OramConfig(value_bytes=value_bytes))
    for names, (lut, ff) in COUNTED[value_bytes].items():
        assert lut <= sum(found[name].lut for name in names) <= 1.15 * lut, names
        assert ff <= sum(found[name].ff for name in names) <= 1.25 * ff, names


def test_blocks_add_up_and_grow_with_what_makes_them():
    config = OramConfig()
    assert estimate(config).lut == sum(block.lut for block in blocks(config).values())
    assert (
        estimate(OramConfig(aes_lanes=1)).lut < estimate(config).lut < estimate(OramConfig(touch="both")).lut
    )
