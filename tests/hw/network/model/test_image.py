"""The size of an image is that of its bytes."""

from hw.network.model.image import image_size
from hw.network.program.image import encode
from tests.hw.network.program.example import CONFIG, example


def test_the_size_of_an_image_is_that_of_its_bytes():
    program = example()
    size = image_size(program)
    assert size.bytes == len(encode(program, CONFIG))
    assert sum(size.slots) >= len(program.taps) + 8 * len(program.tables)
