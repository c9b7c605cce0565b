"""Blocks of pixels of a pointwise layer, and the pieces in which their maps are read."""

from typing import NamedTuple

from hw.conv.config import ConvConfig
from hw.errors import InputError, check_range


class BlockPlan(NamedTuple):
    """Pixels of a block and of the last block, and the number of blocks."""

    pixels: int
    last: int
    blocks: int


class Chunks(NamedTuple):
    """Commands of the DMA: ``chunks`` for each of ``rows``, of ``pixels`` each, the last of ``last_pixels``.

    ``token_chunks`` of them share a token.
    """

    rows: int
    chunks: int
    pixels: int
    last_pixels: int
    token_chunks: int


class PixelWords(NamedTuple):
    """Words of a pixel of the source, of the result, and of the bypass (0: none)."""

    source: int
    result: int
    bypass: int


def room_pixels(config: ConvConfig, words: PixelWords) -> int:
    """Count the pixels that half a buffer has room for; raises `InputError` for none."""
    room = min(config.block_pixels, config.block_words // max(words.source, words.result))
    if words.bypass:
        room = min(room, config.bypass_words // words.bypass)
    if not room:
        legal = f"of no more words than buffers have: {config.block_words}, as bypass {config.bypass_words}"
        raise InputError("pixel", tuple(words), legal)
    return room


def plan_blocks(
    config: ConvConfig,
    size: tuple[int, int],
    words: PixelWords,
    *,
    most: int | None = None,
    whole_rows: bool = False,
    pitched: bool = False,
) -> BlockPlan:
    """Return the largest blocks that fit, all alike but the last.

    ``size``: rows and columns of the map. ``words``: of a pixel. ``most``: most pixels of a block.
    ``whole_rows``: a block must have whole rows.  With ``pitched`` rows are apart in memory: a block smaller
    than a row must divide it.

    Raises `InputError` when not even a pixel, or a row, fits.
    """
    rows, columns = size
    room = room_pixels(config, words)
    if most is not None:
        check_range("most_pixels", most, 1)
        room = min(room, most)
    if whole_rows and room < columns:
        raise InputError("columns", columns, f"at most {room}, for blocks of whole rows")
    total = rows * columns
    if whole_rows or (pitched and room >= columns):
        pixels = _even(rows, room // columns) * columns
    elif pitched:
        pixels = next(n for n in range(room, 0, -1) if columns % n == 0)
    else:
        pixels = _even(total, room)
    count = -(-total // pixels)
    return BlockPlan(pixels, total - (count - 1) * pixels, count)


def block_chunks(size: tuple[int, int], blocks: BlockPlan, *, pitched: bool) -> Chunks:
    """Return the pieces in which a map is read, block by block."""
    rows, columns = size
    if not pitched:
        return Chunks(1, blocks.blocks, blocks.pixels, blocks.last, 1)
    if blocks.pixels % columns == 0:
        return Chunks(rows, 1, columns, columns, blocks.pixels // columns)
    return Chunks(rows, columns // blocks.pixels, blocks.pixels, blocks.pixels, 1)


def row_chunks(size: tuple[int, int]) -> Chunks:
    """Return the pieces in which a map is read, row by row."""
    rows, columns = size
    return Chunks(rows, 1, columns, columns, 1)


def _even(total: int, most: int) -> int:
    """Split ``total`` into as few parts of at most ``most`` as possible, of one size but the last."""
    return -(-total // -(-total // most))
