"""The replay of programs: it refuses commands and transfers that use bytes of no value."""

import numpy as np
import pytest

from hw.network.commands import Bounds, Source, TapTile, Target, VectorCommand, VectorKind
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.onnx_reader import read_network
from hw.network.program.lower import program_of
from hw.network.program.program import NetworkProgram, Step, Transfer
from tests.hw.network.program.replay import homes_mask, region_of, replay
from tests.support.networks.quantized import quantized, random_network

CONFIG = NetworkConfig()


def program(*, pixels, source=0):
    """Return a program that reads two words, moves granules of ``pixels`` to granule 12, and writes words."""
    command = VectorCommand(
        kind=VectorKind.TABLE,
        rows=1,
        columns=pixels,
        sources=(Source(base=source, across=1),),
        target=Target(base=12, pitch=1, granules=1),
        bounds=Bounds(height=1, width=pixels),
        table=0,
    )
    return NetworkProgram(
        name="copy",
        columns=64,
        scratchpad_bytes=CONFIG.scratchpad_bytes,
        steps=(Step(command=command, operator="copy", planned=0, wait_reads=1),),
        reads=(Transfer(dram_address=0, address=0, words=2),),
        writes=(Transfer(dram_address=2, address=3, words=2, starts=(0, 1, 0)),),
        taps=(TapTile(offset=0, row=0, columns=(0,) * 4),),
        passes=(),
        tables=(np.arange(-128, 128, dtype=np.int8),),
        exponentials=(),
        inputs=(),
        constants=(),
        outputs=(),
        contents={},
    )


def play(program, known=None):
    region = np.arange(64 * program.memory_words).astype(np.uint8)
    found = replay(program, region, CONFIG, reads_late=False, writes_late=False, known=known)
    return region, found


def test_bytes_that_nothing_has_written_are_not_specified():
    region, known = play(program(pixels=5))
    assert (region[128:208] == np.arange(80)).all()
    assert known.tolist() == [True] * 208 + [False] * 48


def test_a_command_that_reads_behind_all_that_was_written_is_refused():
    play(program(pixels=5, source=3))
    with pytest.raises(AssertionError):
        play(program(pixels=5, source=4))
    # The last granule comes from bytes of the memory that hold nothing.
    with pytest.raises(AssertionError):
        play(program(pixels=5), np.arange(256) < 64)


def test_a_transfer_of_a_word_without_a_value_is_refused():
    with pytest.raises(AssertionError):
        play(program(pixels=4))


def test_a_spill_moves_bytes_behind_its_value_and_no_command_reads_them():
    """47.5 words of a value."""
    network = read_network(quantized(random_network(4)))
    made = program_of(compile_network(network, scratchpad_bytes=12288))
    region = region_of(made, {each.value.name: np.zeros(each.value.shape, np.int8) for each in made.inputs})
    known = replay(made, region, CONFIG, reads_late=True, writes_late=False)
    assert (~known).sum() == 32
    assert (region[~known] == 85).all()
    strict = replay(made, region, CONFIG, reads_late=True, writes_late=False, known=homes_mask(made))
    assert (strict <= known).all()
