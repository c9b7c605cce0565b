"""Products in pieces, against NumPy's own."""

import numpy as np
import pytest

from sim.golden.products import serial_product


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 17, 700])
@pytest.mark.parametrize("inner", [1, 64, 128, 129, 500])
@pytest.mark.parametrize("columns", [1, 64, 128, 130])
def test_equal_to_the_whole_product(rows, inner, columns):
    rng = np.random.default_rng(rows + inner + columns)
    a = rng.integers(-(2**20), 2**20, (rows, inner)).astype(np.float64)
    b = rng.integers(-128, 128, (columns, inner)).astype(np.float64).T  # as the keys: not contiguous
    expected = a.astype(np.int64) @ b.astype(np.int64)
    assert (serial_product(a, b) == expected).all()
    assert (serial_product(a[:, :1], np.ascontiguousarray(b)[:1]) == np.outer(a[:, 0], b[0])).all()
