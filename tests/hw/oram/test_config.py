"""Maps that there are not."""

import pytest

from hw.errors import InputError
from hw.oram.config import OramConfig


@pytest.mark.parametrize(("touch", "most"), [("one", 20), ("both", 19)])
def test_a_key_has_bits_for_both_of_its_buckets(touch, most):
    OramConfig(key_bits=32, touch=touch, log_n=most)
    with pytest.raises(InputError, match=f"log_n must be up to {most} for keys of 32 bits, not {most + 1}"):
        OramConfig(key_bits=32, touch=touch, log_n=most + 1)
