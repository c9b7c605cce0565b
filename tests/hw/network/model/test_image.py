"""The size of an image is that of its bytes."""

from hw.network.model.image import image_size
from hw.network.program.image import encode
from tests.hw.network.program.example import CONFIG, example


def test_the_size_of_an_image_is_that_of_its_bytes():
    program = example()
    size = image_size(program)
    assert size.bytes == len(encode(program, CONFIG))
    assert size.records == len(size.rows) == len(size.steps) >= size.opening
    assert sum(size.rows) - size.records >= len(program.taps) + 256 * len(program.exponentials) * 7 // 8
