"""Pictures within a page."""

import numpy as np
import plotly.express
from numpy.typing import NDArray


def embedded(pixels: NDArray[np.uint8]) -> str:
    """Return the address of a picture (PNG) that is within the page itself.

    ``pixels``: ``[rows, columns, 3]``, red, green and blue.
    """
    source: str = plotly.express.imshow(pixels, binary_string=True).data[0].source
    return source
