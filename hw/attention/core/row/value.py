"""Value unit: partial sums of probability times value, from zero for every key tile."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.lib.arithmetic.chosen import chosen
from hw.lib.arithmetic.dsp import accumulated, packed_product
from hw.lib.arithmetic.lanes.placed import sums
from hw.lib.arithmetic.packed import split
from hw.lib.convert import Models
from hw.lib.delay import delay, payload_register
from hw.lib.memory import ports, uninitialised

#: Lanes of a RAM of finished sums, and bits of these for each register of the merge's step: a single one
#: would have thousands of loads.
_RAM_LANES, _MERGE_BITS = 8, 17


class ValueStep(data.StructLayout):
    """A probability meets a part of its value."""

    def __init__(self, config: AttentionConfig) -> None:
        parts = range(config.folds)
        super().__init__(
            {
                "part": parts,  #: Its lanes start at lane ``part * D`` of the value.
                "last_part": parts,  #: Parts of the value, less 1.
                "turn": 1,  #: A part is present, one of several of its value.
                #: ``first``, ``ends``: the key is the first, or the last, of its tile.
                "first": 1,
                "ends": 1,
                "last": 1,  #: The part is the last of the last key of its tile.
            }
        )


class _Finished(data.StructLayout):
    """A tile's sum of probabilities, its rise of M in log2 units, and, with several streams, M after it."""

    def __init__(self, config: AttentionConfig) -> None:
        members: dict[str, Any] = {"partial_sum": config.partial_sum_bits, "rise": RESCALE_BITS}
        if config.streams > 1:
            members["reached"] = signed(MAXIMUM_BITS)
        super().__init__(members)


class ValueUnit(wiring.Component):
    """One row's probabilities against one part of a value a cycle.

    Behaviour
    ---------
    Step 0 of a tile's merge is at the earliest `LATENCY` - 1 cycles after ``last``. Its last step is at the
    latest with the first ``ends`` of the next tile but one.  Sums of other tiles do not wait for it.

    Why
    ---
    The sums after a tile's last key go to a small RAM with room for two tiles.  The merge reads one tile
    while the accumulators continue.  Parts of a value take turns at one accumulator a lane.
    """

    #: Fewest cycles from the last part of a tile to its sums on ``partial``.
    LATENCY = 4

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: A part of a value, a cycle before its probability.
                "value": In(data.ArrayLayout(signed(8), config.lanes)),
                #: Constant over the parts of a value; 0 without a key.
                "probability": In(config.probability_width),
                #: Beside the probability; ``turn``, ``first``, ``ends`` and ``last`` are low without a key.
                "step": In(ValueStep(config)),
                "rise": In(RESCALE_BITS),  #: Rise of the maximum with the tile, two cycles after ``last``.
                #: The maximum with the tile, two cycles after ``last``; with several streams only.
                "reached": In(signed(MAXIMUM_BITS)),
                "merge_begins": In(1),  #: Step 0 of the finished tile's merge is in the next cycle.
                #: Step whose ``merge_lanes`` lanes of the finished tile are on ``partial`` in the next cycle.
                "merge_step": In(range(config.merge_steps)),
                #: Partial sums ``sum_j p_j v_j[d]`` of the finished tile, lanes from ``merge_step *
                #: merge_lanes`` on.
                "partial": Out(data.ArrayLayout(signed(config.partial_bits), config.merge_lanes)),
                #: Sum of the finished tile's probabilities, from the cycle after step 0 to the cycle after
                #: the last step.
                "partial_sum": Out(config.partial_sum_bits),
                #: ``finished_rise``, ``finished_reached``: two copies of ``rise``, and ``reached``, of the
                #: finished tile, at the same times.
                "finished_rise": Out(RESCALE_BITS).array(2),
                "finished_reached": Out(signed(MAXIMUM_BITS)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        step = delay(m, "step", self.step, 1)
        later = delay(m, "later", step, 1)
        if isinstance(platform, Models):
            self._modelled(m)
            self._finish(m, step, later)
            return m
        if config.packs_values:
            sums = self._packed(m, platform, delay(m, "added", later, 1))
        else:
            sums = self._accumulated(m, platform, step, later)
        self._finish(m, step, later)
        self._keep(m, later, sums)
        return m

    def _modelled(self, m: Module) -> None:
        """Place a model of multipliers, sums, and the RAM of those that are finished."""
        config = self._config
        partial = sums(
            m,
            value=Value.cast(self.value),
            factor=self.probability,
            step={name: getattr(self.step, name) for name in self.step.shape().members},
            merge_begins=self.merge_begins,
            merge_step=self.merge_step,
            folds=config.folds,
            turns=not config.packs_values,
            bits=config.partial_bits,
            merge_lanes=config.merge_lanes,
        )
        m.d.comb += self.partial.as_value().eq(partial)

    def _accumulated(self, m: Module, platform: Any, step: Any, later: Any) -> list[Value]:
        """Accumulate in the DSP slices; return the sums of three cycles ago."""
        config = self._config
        sums: list[Value] = []
        for d in range(config.lanes):
            total = Signal(signed(config.partial_bits), name=f"sum_{d}")
            # Sums of the other parts, except for the next one, which is in the slice or on its way into it.
            resting, others = total, [total]
            for n in range(config.folds - 2):
                rested = Signal.like(total, name=f"resting_{n}_{d}", reset_less=True)
                m.d.sync += rested.eq(Mux(later.turn, resting, rested))
                resting = rested
                others.append(rested)
            other: Value = others[0]
            for n, choice in enumerate(others[1:], start=2):
                other = Mux(later.last_part == n, choice, other)
            m.d.comb += total.eq(
                accumulated(
                    m,
                    platform,
                    f"accumulator_{d}",
                    factor=Cat(self.probability, Const(0, 1)).as_signed(),
                    value=self.value[d],
                    bits=config.partial_bits,
                    first=step.first,
                    turn=step.turn,
                    rest=later.turn,
                    other=other,
                )
            )
            sums.append(total)
        return sums

    def _packed(self, m: Module, platform: Any, step: Any) -> list[Value]:
        """Multiply two lanes at once, and accumulate outside, as a packed word has no room for sums."""
        config = self._config
        products: list[Value] = []
        for d in range(0, config.lanes, 2):
            word = packed_product(
                m,
                platform,
                f"product_{d}",
                high=self.value[d + 1],
                low=self.value[d],
                load=Const(1),
                shared=Cat(self.probability, Const(0, 1)).as_signed(),
                shared_registers=1,
            )
            high, low = split(word)
            products += [low, high]
        # Without a key the product is 0: the accumulator needs no enable.
        sums: list[Value] = []
        for d, product in enumerate(products):
            banks = [
                Signal(signed(config.partial_bits), name=f"bank_{part}_{d}", reset_less=True)
                for part in range(config.folds)
            ]
            before: Value = banks[0]
            for part in range(1, config.folds):
                before = Mux(step.part == part, banks[part], before)
            result = Signal(config.partial_bits, name=f"sum_{d}")
            m.d.comb += result.eq(Mux(step.first, 0, before) + product)
            for part, bank in enumerate(banks):
                # An expression, not a condition: simulators then write these registers only once.
                m.d.sync += bank.eq(result if config.folds == 1 else Mux(step.part == part, result, bank))
            sums.append(result)
        return sums

    def _finish(self, m: Module, step: Any, later: Any) -> None:
        """Add up probabilities; keep sum, rise and maximum of two tiles; return the earlier tile's."""
        config = self._config
        total = Signal(config.partial_sum_bits, reset_less=True)
        probability = delay(m, "probability", self.probability, 1, reset=False)
        with m.If(step.part == 0):
            m.d.sync += total.eq(Mux(step.first, 0, total) + probability)
        m.submodules.finished = finished = uninitialised(
            width=_Finished(config).size, depth=2, ram_style="distributed"
        )
        put, get = ports(finished, domain="comb")
        coming = Signal()
        reading = Signal(init=1)
        given, taken = data.View(_Finished(config), put.data), data.View(_Finished(config), get.data)
        m.d.sync += [coming.eq(coming ^ later.last), reading.eq(reading ^ self.merge_begins)]
        m.d.comb += [
            put.en.eq(later.last),
            put.addr.eq(coming),
            given.partial_sum.eq(total),
            given.rise.eq(self.rise),
            get.addr.eq(reading),
        ]
        m.d.sync += payload_register(m, self.partial_sum, name="partial_sum_held").eq(taken.partial_sum)
        for n, rise in enumerate(self.finished_rise):
            m.d.comb += rise.eq(self._register(m, f"rise_{n}", taken.rise))
        if config.streams > 1:
            m.d.comb += given.reached.eq(self.reached)
            m.d.sync += payload_register(m, self.finished_reached, name="reached_held").eq(taken.reached)

    def _keep(self, m: Module, later: Any, sums: list[Value]) -> None:
        """Keep the sums of two tiles; return the lanes of a step of the earlier one."""
        config = self._config
        read: list[Value] = []
        for first in range(0, config.lanes, _RAM_LANES):
            # Equal registers that tools must not merge.
            name = f"{first}"
            own = Signal(ValueStep(config), name=f"own_{name}", attrs={"keep": 1})
            coming, reading, held = (
                Signal(name=f"{what}_{name}", init=what != "coming", attrs={"keep": 1})
                for what in ("coming", "reading", "held")
            )
            m.d.sync += [
                own.eq(later),
                coming.eq(coming ^ own.last),
                reading.eq(reading ^ self.merge_begins),
                held.eq(reading),
            ]
            lanes = sums[first : first + _RAM_LANES]
            m.submodules[f"finished_{name}"] = finished = uninitialised(
                width=config.partial_bits * len(lanes), depth=2 * config.folds, ram_style="distributed"
            )
            put, get = ports(finished, domain="comb")
            part = Signal(range(config.folds), name=f"part_{name}")
            with m.Switch(self._register(m, f"address_{name}", self.merge_step)):
                for n in range(config.folds):
                    with m.Case(*range(n * config.part_steps, (n + 1) * config.part_steps)):
                        m.d.comb += part.eq(n)
            m.d.comb += [
                put.en.eq(own.ends),
                put.addr.eq(Cat(coming, own.part)),
                put.data.eq(Cat(*lanes)),
                get.addr.eq(Cat(held, part)),
            ]
            read.append(get.data)
        finished_sums, bits = Cat(*read), config.partial_bits * config.merge_lanes
        within = Signal(range(config.part_steps))
        with m.Switch(self.merge_step):
            for n in range(config.part_steps):
                with m.Case(*range(n, config.merge_steps, config.part_steps)):
                    m.d.comb += within.eq(n)
        partial = self.partial.as_value()
        for low in range(0, bits, _MERGE_BITS):
            high = min(bits, low + _MERGE_BITS)
            words = [finished_sums[n * bits + low : n * bits + high] for n in range(config.part_steps)]
            m.d.comb += partial[low:high].eq(chosen(words, self._register(m, f"lanes_{low}", within)))

    def _register(self, m: Module, name: str, value: Value) -> Signal:
        """Return a register of a value for some of its loads."""
        register = Signal.like(value, name=name, reset_less=True, attrs={"keep": 1})
        m.d.sync += register.eq(value)
        return register
