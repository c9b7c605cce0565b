"""Random commands on int16, and memories for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hw.network.commands import Addition, Bounds, Source, TapTile, Target, VectorCommand, VectorKind
from hw.network.normalization import channel_rows, most_epsilon
from tests.hw.network.vector.bench import GRANULES
from tests.hw.network.vector.drawn import AREA, WRAP, Drawn

#: Values of a granule.
VALUES = 8


class DrawnWide(Drawn):
    """Draws commands on int16; the values of each LayerNorm are kept for the memory."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._values: list[tuple[np.ndarray, np.ndarray]] = []
        #: Granules from which on sources and results of LayerNorms may lie.
        self._next_source, self._next_target = WRAP, WRAP + AREA

    def memory(self) -> np.ndarray:
        """Draw all granules, and those of LayerNorms' sources."""
        found = super().memory()
        for addresses, granules in self._values:
            found[addresses % GRANULES] = granules
        return found

    def sum(self) -> VectorCommand:
        """Draw a sum."""
        found, shift = self.command(VectorKind.ADD), self.rng.choice([24, self.rng.randrange(20, 36)])
        factors = [self.rng.getrandbits(26) for _ in range(2)]
        if self.rng.random() < 0.4:  # ties
            factors = [1 << min(25, shift - 1), 1 << min(25, shift - 2)]
        addition = Addition(first=factors[0], second=factors[1], shift=shift)
        return self._plain_target(replace(found, kind=VectorKind.ADD16, addition=addition))

    def mean(self) -> VectorCommand:
        """Draw a mean."""
        found = self.command(VectorKind.MEAN)
        shift, elements = self.rng.randrange(20, 30), found.taps * found.kernel_columns
        first = self.rng.choice(
            [min((1 << shift) // elements, (1 << 26) - 1), self.rng.getrandbits(24) // elements]
        )
        addition = Addition(first=first, second=0, shift=shift)
        return self._plain_target(replace(found, kind=VectorKind.MEAN16, addition=addition, scales=()))

    def norms(self, channels: int, pixels: int, *, bits: tuple[int, ...] = (8, 16)) -> list[VectorCommand]:
        """Draw statistics and the LayerNorms that use them; their results lie side by side."""
        rng, numbers = self.rng, self.numbers
        granules = -(-channels // VALUES)
        pitch = granules + rng.choice([0, 0, 1, 3])
        source = Source(base=self._next_source + rng.randrange(4), across=pitch)
        self._next_source = source.base + pixels * pitch
        assert self._next_source <= WRAP + AREA
        deviation = 2.0 ** rng.uniform(0, 13)
        values = numbers.normal(0, deviation, (pixels, granules * VALUES))
        values += numbers.normal(0, deviation, (pixels, 1))
        values[numbers.random(pixels) < 0.1] = rng.choice([-32768, 32767, 0])  # equal ones
        values[:, channels:] = 0
        stored = np.clip(np.rint(values), -32768, 32767).astype("<i2")
        addresses = source.base + np.arange(pixels)[:, None] * pitch + np.arange(granules)
        self._values.append((addresses.reshape(-1), stored.view(np.int8).reshape(-1, 16)))
        self.taps.append(TapTile(offset=0, row=0, columns=(0,) * 4, valid=(True,) * 4))
        epsilon = rng.choice([1, rng.randrange(1, 1 << 20), most_epsilon(channels)])
        plain = {
            "rows": 1,
            "columns": pixels,
            "sources": (source,),
            "bounds": Bounds(height=1, width=1),
            "first_tap": len(self.taps) - 1,
            "channels": channels,
            "pixel": rng.randrange(33 - pixels),
        }
        commands = [
            VectorCommand(
                kind=VectorKind.STATS, target=Target(base=0, pitch=0, granules=0), epsilon=epsilon, **plain
            )
        ]
        for each in bits:
            size = rng.choice([20.0, 100.0]) * (1 if each == 8 else 100)
            gains, biases = (numbers.normal(0, scale, channels) for scale in (size, size))
            rows = channel_rows(gains.tolist(), biases.tolist(), bits=each, zero=rng.choice([0, -3]))
            self.norm_rows.append(rows)
            out = -(-channels * each // 128)
            target = Target(base=self._next_target, pitch=out + rng.choice([0, 2]), granules=out)
            self._next_target += pixels * target.pitch
            commands.append(
                VectorCommand(
                    kind=VectorKind.NORM,
                    target=target,
                    bits=each,
                    norm=len(self.norm_rows) - 1,
                    shift=rows.shift,
                    **plain,
                )
            )
        assert self._next_target <= WRAP + 2 * AREA
        return commands

    def _plain_target(self, command: VectorCommand) -> VectorCommand:
        """Return a command whose operands have no zero points."""
        target = replace(command.target, zero=0, low=-128, high=127)
        sources = tuple(replace(source, zero=0) for source in command.sources)
        return replace(command, target=target, sources=sources)
