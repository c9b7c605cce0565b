"""Matrix products in pieces that BLAS computes without threads.

BLAS spreads even products of a few microseconds over threads that wait for each other by spinning.  On a busy
machine that makes attention, a long series of small products, ten times slower and keeps every core busy.
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

_SERIAL_PRODUCTS = 2**18  # multiplications up to which OpenBLAS stays in one thread
_SIDE = 128  # of a piece of the right matrix: leaves at least 16 rows to a piece of the left one


def serial_product(a: Float, b: Float) -> Float:
    """Multiply ``a`` [n, k] and ``b`` [k, m] in the calling thread."""
    out = np.zeros((len(a), b.shape[1]))
    for column in range(0, b.shape[1], _SIDE):
        columns = slice(column, column + _SIDE)
        for row in range(0, len(b), _SIDE):
            inner = slice(row, row + _SIDE)
            part = _pieces(a[:, inner], b[inner, columns])
            if part.shape == out.shape and len(b) <= _SIDE:
                return part
            out[:, columns] += part
    return out


def _pieces(a: Float, b: Float) -> Float:
    """Multiply pieces of rows of ``a`` by a ``b`` of up to `_SIDE` rows and columns."""
    out = np.empty((len(a), b.shape[1]))
    piece = max(1, _SERIAL_PRODUCTS // b.size)
    whole = len(a) // piece * piece
    shape = (-1, piece, b.shape[1])
    np.matmul(a[:whole].reshape(-1, piece, a.shape[1]), b, out=out[:whole].reshape(shape))
    np.matmul(a[whole:], b, out=out[whole:])
    return out
