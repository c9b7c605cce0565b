"""The streams of jobs for a core alone: the core's results are the golden model's."""

import numpy as np
import pytest
from amaranth.hdl import Fragment, Shape

from hw.conv.core.core import ConvCore
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors
from hw.conv.driver.streams import conv_shapes, conv_streams
from hw.conv.driver.weight_streams import ChannelParameters
from hw.conv.driver.workload import MapName
from hw.cores.ports import core_ports
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from sim.engines.conv.execute import execute
from tests.support.conv.jobs import small
from tests.support.conv.sequences import Drawing
from tests.support.gateware.streams import Side, exchange, seeds

BEAT_BITS = 128
#: The smallest engine with all units.
TINY = small(
    ports=1, gather_words=0, taps=1, block_words=256, bypass_words=64, block_pixels=16, tap_words=64,
    offset_entries=128, dot_words=32, bank_words=256,
)  # fmt: skip


def drawn(seed, jobs):
    """Draw jobs, each on maps of its own, for no memory keeps a result."""
    drawing = Drawing(seed, TINY, side=6, longest=400)
    for _ in range(jobs):
        drawing.maps.clear()
        drawing.launch(1)
    return drawing.program().at(BEAT_BITS)


def expected_words(program):
    """Return the words of all results in order, and the lanes that count: [words, L] each."""
    config, golden = program.config, execute(program)
    words, masks = [], []
    for step in program.steps:
        form, tensor = step.job.result_form, golden[step.result]
        lanes = np.zeros((*tensor.shape[1:], form.words(config) * config.lanes), np.int8)
        known = np.zeros_like(lanes, np.bool_)
        lanes[..., form.lanes(config)] = tensor.transpose(1, 2, 0)
        known[..., form.lanes(config)] = True
        for source, target in ((lanes, words), (known, masks)):
            parts = source.reshape(*tensor.shape[1:], form.parts, -1, config.lanes)
            if step.rearrangement.split:  # each row part by part
                parts = parts.swapaxes(1, 2)
            target.append(parts.reshape(-1, config.lanes))
    return np.concatenate(words), np.concatenate(masks)


def run(program, *, stall=0.0, seed=0):
    core = ConvCore(program.config, InlinePlacer(), beat_bits=program.beat_bits)
    words, known = expected_words(program)
    sides = {}
    for name, items in conv_streams(program).items():
        array, _, number = name.rpartition("_")
        port = getattr(core, array)[int(number)] if number.isdigit() else getattr(core, name)
        sides[name] = Side(port, items=items, stall=stall)
    sides["output"] = Side(core.o, count=len(words), stall=stall)
    exchange(core, sides, seed=seed, limit=100_000)
    raw = b"".join(item.to_bytes(program.config.lanes, "little") for item in sides["output"].received)
    found = np.frombuffer(raw, np.int8).reshape(words.shape)
    np.testing.assert_array_equal(found[known], words[known])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(24))
def test_random_jobs(seed):
    run(drawn(seed, 4), stall=[0, 0.3, 0.7][seed % 3], seed=seed)


def test_shapes_are_those_of_the_core_s_inputs():
    core = ConvCore(TINY, InlinePlacer(), beat_bits=BEAT_BITS)
    Fragment.get(core, None)  # Amaranth warns of components that are never elaborated
    ports = {port.name.removesuffix("_payload"): port for port in core_ports(core) if port.role == "payload"}
    shapes = conv_shapes(TINY, beat_bits=BEAT_BITS)
    assert {name for name, port in ports.items() if port.is_input} == set(shapes)
    for name, shape in shapes.items():
        array, _, number = name.rpartition("_")
        port = getattr(core, array)[int(number)] if number.isdigit() else getattr(core, name)
        assert port.payload.shape() == shape


@pytest.mark.parametrize("seed", seeds(40, 400))
def test_every_item_fits_its_port(seed):
    program = drawn(seed, 3)
    shapes = conv_shapes(TINY, beat_bits=BEAT_BITS)
    for name, items in conv_streams(program).items():
        for item in items:
            fits(shapes[name], item, name)


def fits(shape, item, name):
    """Check that an item has every field, and that each is in its range."""
    if isinstance(item, dict):
        assert set(dict(shape)) == set(item), name
        for key, value in item.items():
            fits(shape[key].shape, value, f"{name}.{key}")
    elif isinstance(item, list):
        assert len(item) == shape.length, name
        for value in item:
            fits(shape.elem_shape, value, name)
    else:
        plain = Shape.cast(shape)
        low = -(1 << plain.width - 1) if plain.signed else 0
        high = (1 << plain.width - 1 if plain.signed else 1 << plain.width) - 1
        assert low <= item <= high, f"{name}: {item}"


def test_a_result_is_not_read_again():
    layer = ConvLayer(channels=8, rows=2, columns=2, outputs=8)
    numbers = np.ones(8, np.int64)
    tensors = LayerTensors(
        layer=layer,
        w=np.ones((8, 8, 1, 1), np.int8),
        parameters=ChannelParameters(bias=numbers, multiplier=numbers, shift=numbers, post=numbers),
    )
    first = ConvStep(name="a", layers=(tensors,), source=MapName(name="x"), result="y")
    second = ConvStep(name="b", layers=(tensors,), source=MapName(name="y"), result="z")
    program = ConvProgram(
        config=TINY, inputs={"x": np.zeros((8, 2, 2), np.int8)}, steps=(first, second), beat_bits=BEAT_BITS
    )
    message = r"^map of a job must be one of the program's inputs, and whole, not 'y'$"
    with pytest.raises(InputError, match=message):
        conv_streams(program)
