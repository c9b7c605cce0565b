"""The model of the matrix array against its cells, on any inputs that a sweep brings."""

import pytest
from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hw.lib.arithmetic.models import models_of
from hw.lib.convert import Models, to_verilog
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import RESULT_BITS, MatrixConfig
from hw.network.matrix.layouts import SHIFT_BITS
from hw.network.matrix.packet_kinds import PacketKinds
from hw.network.matrix.sweep import MatrixSweep
from tests.support.gateware.bench import assert_equal

#: Bits that a call of the bench's source of random bits has.
_RANDOM = 32


class Swept(wiring.Component):
    """An array behind its sweep: commands, pixels and packets of random bits, results where there are any."""

    def __init__(self, config):
        self._config = config
        super().__init__(
            {
                "order": In(16),
                "pixels": In(8 * config.inputs).array(2),
                "word": In(config.packet_bits),
                "valid": In(8),
                "shift": In(SHIFT_BITS),
                "o": Out(RESULT_BITS * config.columns),
                "state": Out(4),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, order = self._config, self.order
        m.submodules.sweep = sweep = MatrixSweep(config)
        m.submodules.kinds = kinds = PacketKinds()
        m.submodules.array = array = MatrixArray(config)
        connect(m, kinds.o, array.kind)
        given, run = sweep.command.payload, kinds.i.payload
        start = sweep.command.ready & kinds.i.ready
        m.d.comb += [
            given.order.steps.eq(order[:5] | 1),
            given.order.last_steps.eq(order[5:10] | 1),
            given.order.blocks.eq(1 + order[10]),
            given.order.n_tiles.eq(1 + order[11]),
            given.k_tiles.eq(1 + order[12:14]),
            given.two.eq(order[14]),
            run.groups.eq(given.order.blocks * given.order.n_tiles),
            run.k_tiles.eq(given.k_tiles),
            sweep.command.valid.eq(start),
            kinds.i.valid.eq(start),
            *(words.valid.eq(self.valid[:2].any()) for words in sweep.words),
            *(Value.cast(x).eq(pixels) for x, pixels in zip(array.x, self.pixels, strict=True)),
            sweep.room.eq(self.valid[2:4].any()),
            sweep.shift.eq(self.shift),
            sweep.loaded.eq(array.loaded),
            array.step.eq(sweep.step),
            array.packet.valid.eq(self.valid[4:6].any()),
            array.packet.payload.eq(self.word),
            self.o.eq(Mux(array.valid, array.o, 0)),
            self.state.eq(Cat(array.valid, array.loaded, array.packet.ready, array.kind.ready)),
        ]
        return m


def inputs(config):
    """Return the width of each input."""
    pixels = {f"pixels__{n}": 8 * config.inputs for n in range(2)}
    return {"order": 16, **pixels, "word": config.packet_bits, "valid": 8, "shift": SHIFT_BITS}


@pytest.mark.soak  # `make test` compares results of whole kernels
@pytest.mark.parametrize("size", [(16, 8), (32, 16), (64, 4)], ids=lambda size: "x".join(map(str, size)))
def test_the_model_computes_what_the_cells_do(size, tmp_path):
    config = MatrixConfig(inputs=size[0], columns=size[1], block_pixels=32, ports=1, port_bits=size[1] * 32)
    gold = to_verilog(Swept(config), name="Gold")
    gate = to_verilog(Swept(config), name="Gate", platform=Models())
    assert ("DSP48E2" in gold, "DSP48E2" in gate) == (True, False)
    widths, pins = {}, [".clk(clk)", ".rst(reset)"]
    for pin, width in inputs(config).items():
        words = {f"{pin}_{n}": min(_RANDOM, width - n) for n in range(0, width, _RANDOM)}
        widths |= words
        pins.append(f".{pin}({{{', '.join(reversed(words))}}})")
    bits = RESULT_BITS * config.columns + 4
    placed = {
        kind: f"{kind.title()} {kind}_array ({', '.join(pins)}, "
        f".o({kind}[{bits - 1}:4]), .state({kind}[3:0]));"
        for kind in ("gold", "gate")
    }
    texts = {"gold.v": gold, "gate.v": gate}
    texts |= {path.name: path.read_text() for path in models_of(gold + gate)}
    assert_equal(tmp_path, texts, widths, bits=bits, **placed)
