"""RAMs of a lane cell: weights of taps and strips, and parameters of channels."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import TAP_LAYER_WORDS, ConvConfig
from hw.conv.core.layouts import TapRead
from hw.conv.core.packets import Parameters, Record, TapLoad
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised

#: Weights of a strip: a kernel of 3 x 3.
STRIP_TAPS = 9


class LaneRam(wiring.Component):
    """RAMs of the lanes of a cell, in two halves: one for a layer, one for the next layer while it loads.

    ``strip_at``, ``parameters_at``: cycles from ``read`` to the weights of strips, and to each of
    `Parameters`.

    Why
    ---
    The members of `Parameters` are used in different stages.  Each has a RAM of its own, and its address is
    delayed instead of its data: an address is narrower.
    """

    def __init__(self, config: ConvConfig, *, strip_at: int, parameters_at: dict[str, int]) -> None:
        self._config = config
        self._strip_at = strip_at
        self._parameters_at = parameters_at
        lanes, weight = config.cell_lanes, data.ArrayLayout(config.weight_bits, config.cell_lanes)
        members: dict[str, Any] = {
            "index": In(range(max(2, config.lanes // lanes))),  #: Number of this cell; constant.
            "load": In(TapLoad(config)),
            "read": In(TapRead(config)),
            "weights": Out(data.ArrayLayout(weight, config.taps)),  #: Two cycles after ``read``.
            "parameters": Out(Parameters()).array(lanes),  #: Each member at its own delay.
        }
        if config.strip:
            members["strips"] = Out(data.ArrayLayout(config.weight_bits, STRIP_TAPS)).array(lanes)
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Build the RAMs; a record is registered before it is written."""
        m = Module()
        config, read = self._config, self.read
        load = Signal(self.load.shape(), reset_less=True)
        mine = Signal()
        m.d.sync += [load.eq(self.load), mine.eq(self.load.valid & (self.load.cell == self.index))]

        def addresses(depth: int, word: Any) -> tuple[Any, Any]:
            bits = (depth - 1).bit_length()
            return Cat(load.address[:bits], load.half), Cat(word[:bits], read.half)

        weights_bits = len(self.weights.as_value())
        ram = uninitialised(width=weights_bits, depth=2 * config.tap_words, ram_style="block")
        m.submodules.weights = ram
        write, fetch = ports(ram)
        write_address, read_address = addresses(config.tap_words, read.weight)
        m.d.comb += [
            write.en.eq(mine & (load.kind == Record.TAPS)),
            write.addr.eq(write_address),
            write.data.eq(load.record),
            fetch.en.eq(1),
            fetch.addr.eq(read_address),
        ]
        m.d.sync += self.weights.as_value().eq(fetch.data)

        write_address, read_address = addresses(TAP_LAYER_WORDS, read.word)

        def table(name: str, bits: int, kind: Record, lane: int, field: Any, at: int) -> Signal:
            """Build a LUTRAM of one lane; its output follows ``read`` by ``at`` cycles."""
            ram = uninitialised(width=bits, depth=2 * TAP_LAYER_WORDS, ram_style="distributed")
            m.submodules[f"{name}_{lane}"] = ram
            write, fetch = ports(ram, domain="comb")
            output = Signal(bits, name=f"{name}_{lane}_read", reset_less=True)
            m.d.comb += [
                write.en.eq(mine & (load.kind == kind) & (load.lane == lane)),
                write.addr.eq(write_address),
                write.data.eq(field),
                fetch.addr.eq(late[at - 1]),
            ]
            m.d.sync += output.eq(fetch.data)
            return output

        times = set(self._parameters_at.values()) | {self._strip_at}
        late = {at - 1: delay(m, f"read_{at}", read_address, at - 1, reset=False) for at in sorted(times)}
        for lane in range(config.cell_lanes):
            if config.strip:
                bits = STRIP_TAPS * config.weight_bits
                output = table("strips", bits, Record.STRIPS, lane, load.record, self._strip_at)
                m.d.comb += self.strips[lane].as_value().eq(output)
            record = data.View(Parameters(), load.record[: Parameters().size])
            for name, at in self._parameters_at.items():
                field = self.parameters[lane][name]
                output = table(name, len(field), Record.PARAMETERS, lane, record[name], at)
                m.d.comb += field.eq(output)
        return m
