"""The photograph of the demo: its file, its offsets, its results."""

import base64
import math
import struct
import zlib

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.model.predict import predict
from hw.errors import InputError
from sim.engines.conv.adapter import ADAPTER
from sim.engines.conv.cases import SMALL
from sim.engines.conv.demo import (
    FILTERS,
    LAUNCH,
    TURN,
    ZOOM,
    conv_demo,
    layer,
    photograph,
    pictures,
    read_picture,
    turned,
)
from sim.engines.conv.job import RESULT
from sim.report.pictures import embedded
from sim.run.result import RunResult


def test_the_line_buffer_holds_the_photograph(picture):
    """Then the samples alone determine the cycles, and the prediction is not only a bound."""
    config = conv_demo().config
    board = load_board("u55c")
    job = ADAPTER.job(layer(picture), config)
    found = predict(ADAPTER.workload(job, config), config, board)
    assert not found.open_ended
    steps = picture.shape[0] * picture.shape[1] * 5
    # The map is read first: any row of it may be sampled in the first row of results.
    assert steps < found.cycles_total < steps + 1.1 * picture.shape[0] * picture.shape[1]
    assert predict(ADAPTER.workload(job, SMALL), SMALL, board).open_ended


@pytest.fixture(scope="module")
def picture():
    return read_picture(photograph())


def test_pictures_are_read_and_refused(tmp_path, picture):
    assert picture.shape == (96, 128, 3)
    path = tmp_path / "other.ppm"
    path.write_bytes(b"P6 2 1\n255\n\n\x01\x02 \x04\x05")  # pixels may begin with bytes that are whitespace
    np.testing.assert_array_equal(read_picture(path), [[[10, 1, 2], [32, 4, 5]]])
    path.write_bytes(b"P5 2 1\n255\n12")
    with pytest.raises(InputError, match="a binary PPM"):
        read_picture(path)


def test_offsets_turn_and_zoom_about_the_middle():
    """Against complex numbers: each tap's point, from the middle, times one number."""
    offset = turned(8, 11).reshape(9, 2, 8, 11)
    factor = complex(math.cos(math.radians(TURN)), -math.sin(math.radians(TURN))) / ZOOM
    for k, r, c in np.ndindex(9, 8, 11):
        point = complex(c + k % 3 - 1 - 5, r + k // 3 - 1 - 3.5)
        moved = point + complex(offset[k, 1, r, c], offset[k, 0, r, c])
        assert moved == pytest.approx(point * factor)


def test_results_are_the_filtered_photograph(picture):
    """The golden model's pictures against samples of the photograph in real numbers, within rounding:
    positions to 1/64 of a pixel, weights to 1/254 of the largest, results to a half.
    """
    job = ADAPTER.job(layer(picture), SMALL)
    found = pictures(ADAPTER.golden(job, SMALL)[RESULT])
    offset = turned(96, 128).reshape(9, 2, 96, 128)
    padded = np.pad(picture.astype(float), ((2, 2), (2, 2), (0, 0)))
    rng = np.random.default_rng(0)
    for r, c in zip(rng.integers(10, 86, 40), rng.integers(10, 118, 40), strict=True):
        samples = []
        for k in range(9):
            y, x = r + k // 3 - 1 + offset[k, 0, r, c] + 2, c + k % 3 - 1 + offset[k, 1, r, c] + 2
            (i, v), (j, u) = (divmod(at, 1) for at in (min(max(y, 0), 98), min(max(x, 0), 130)))
            four = padded[int(i) : int(i) + 2, int(j) : int(j) + 2]
            samples.append(
                (1 - v) * ((1 - u) * four[0, 0] + u * four[0, 1])
                + v * ((1 - u) * four[1, 0] + u * four[1, 1])
            )
        for name, (kernel, grey) in FILTERS.items():
            flat = np.array(kernel).reshape(9, 1)
            exact = np.clip((flat * samples).sum(axis=0) + grey, 0, 255)
            # Neighbouring pixels differ by up to 255: a 64th of it for each weight, both ways.
            most = np.abs(flat).sum() * (2 * 255 / 64 + 255 / 254) + 1
            assert np.abs(found[name][r, c] - exact).max() <= most, name
    plain = np.abs(found["as it is"].astype(int)).mean()
    assert plain > 50  # a picture, not black


def test_demo_shows_before_and_after(picture):
    demo = conv_demo()
    job = ADAPTER.job(demo.launches[LAUNCH], demo.config)
    golden = ADAPTER.golden(job, demo.config)
    outputs = ADAPTER.results(job, demo.config, golden)
    results = {LAUNCH: RunResult(outputs=outputs, integers=golden, golden=golden, job=job)}
    shown = demo.pictures(results)
    assert list(shown) == ["photograph", *FILTERS]
    np.testing.assert_array_equal(shown["photograph"], picture)
    assert {pixels.shape for pixels in shown.values()} == {(96, 128, 3)}


def test_png_holds_the_pixels():
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    kind, _, text = embedded(pixels).partition(",")
    assert kind == "data:image/png;base64"
    content, chunks = base64.b64decode(text)[8:], {}
    while content:
        size = struct.unpack(">I", content[:4])[0]
        body, check = content[4 : 8 + size], content[8 + size : 12 + size]
        assert struct.unpack(">I", check)[0] == zlib.crc32(body)
        chunks[body[:4]], content = body[4:], content[12 + size :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (3, 2, 8, 2, 0, 0, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(2, 10)
    assert not rows[:, 0].any()
    np.testing.assert_array_equal(rows[:, 1:].reshape(2, 3, 3), pixels)
