"""A region holds inputs and constants where transfers read them; outputs are read where they are written."""

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.driver.region import read_outputs, region_of, unwritten
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.writer import written
from hw.network.program.lower import program_of
from sim.golden.network import execute
from tests.hw.network.program import replay as naive
from tests.hw.network.program.replay import replay
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized
from tests.support.networks.sentences import small


@pytest.fixture(scope="module")
def compiled():
    """Compile a network with bands, a constant and a spill."""
    net = Builder("bands")
    x = net.input("image", 1, 16, 40, 12)
    a = net.conv(x, 32, name="a", kernel=3)
    scaled = net.add("Mul", net.add("Sigmoid", a, name="gate"), net.parameter(1, 32, 1, 1), name="scaled")
    net.output(net.conv(scaled, 16, name="b", kernel=5))
    return compile_network(read_network(quantized(net.model())), scratchpad_bytes=16384)


@pytest.fixture(scope="module")
def program(compiled):
    return program_of(compiled)


def inputs_of(program):
    numbers = np.random.default_rng(0)
    return {
        home.value.name: numbers.integers(-128, 128, home.value.shape).astype(np.int8)
        for home in program.inputs
    }


def test_a_program_on_its_region_gives_the_networks_outputs(compiled, program):
    assert program.constants
    inputs = inputs_of(program)
    region = region_of(program, inputs, fill=90)
    before = region.copy()
    replay(program, region, NetworkConfig(), reads_late=True, writes_late=True)
    found, wanted = read_outputs(program, region), execute(compiled.network, inputs)
    assert set(found) == set(compiled.network.outputs)
    assert all((elements == wanted[name]).all() for name, elements in found.items())
    untouched = unwritten(program)
    assert (region[untouched] == before[untouched]).all()
    # Outputs and spills alone are written.
    written = sum(each.words for each in program.writes) * 64
    assert 0 < (~untouched).sum() <= written


def test_bytes_that_hold_nothing_are_the_fill(program):
    inputs = inputs_of(program)
    first, second = (region_of(program, inputs, fill=fill) for fill in (0, 255))
    same = first == second
    homes = (*program.inputs, *program.constants)
    assert same.sum() == sum(home.size_bytes for home in homes)
    assert (first[~same] == 0).all()


def test_wrong_inputs_are_refused(program):
    inputs = inputs_of(program)
    (name,) = inputs
    for wrong, message in (
        ({}, "'missing'"),
        ({name: inputs[name].astype(np.int16)}, "int16"),
        ({name: inputs[name][1:]}, "int8 of shape"),
        (inputs | {"other": inputs[name]}, "input must be one of"),
    ):
        with pytest.raises(InputError, match=message):
            region_of(program, wrong)


def test_a_region_cut_short_is_refused(program):
    region = region_of(program, inputs_of(program))
    with pytest.raises(InputError, match="bytes of the region must be at least"):
        read_outputs(program, region[:-1])


def test_numbers_of_rows_and_their_table():
    """Numbers lie where the first transfer reads them, the table behind all else."""
    network = read_tokens(written(small("mask", "heads")), (9, 12))
    program = program_of(compile_network(network, scratchpad_bytes=1 << 16))
    ids = np.random.default_rng(0).integers(0, 50, (1, 21, 1)).astype(np.int32)
    (name,) = network.inputs
    region = region_of(program, {name: ids}, fill=170)
    assert (region == naive.region_of(program, {name: ids})).all()
    (transfer,) = (each for each in program.reads if each.gathered)
    numbers = region[64 * transfer.dram_address :][: 4 * 21].view(np.int32)
    assert (numbers == ids.reshape(-1)).all()
    rows = region[64 * transfer.gathered.table :].view(np.int16).reshape(50, 64)
    (table,) = (
        program.contents[home.value.name] for home in program.constants if ":table" in home.value.name
    )
    assert (rows == table).all()
    with pytest.raises(InputError, match=r"int32 of shape"):
        region_of(program, {name: ids.astype(np.int64)})
