"""Illegal shapes of pages are refused."""

import pytest

from hw.errors import InputError
from hw.oram.core.crypto.config import PageShape


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        ("lanes", {"page_bytes": 192, "lanes": 3}),
        ("page_bytes", {"page_bytes": 40, "lanes": 1}),
        ("page_bytes", {"page_bytes": 192, "lanes": 8}),
        ("page_bytes", {"page_bytes": 0, "lanes": 1}),
        ("page_bytes", {"page_bytes": 65536, "lanes": 4}),
        ("mac_bits", {"page_bytes": 64, "lanes": 1, "mac_bits": 32}),
    ],
)
def test_refused(field, shape):
    with pytest.raises(InputError, match=f"{field} must be .*, not {shape[field]}"):
        PageShape(**shape)
