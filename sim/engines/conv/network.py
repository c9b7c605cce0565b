"""A layer table as one launch: which layers share a job, how they follow each other, seeded tensors.

A table has sizes but no edges.  Names say them where they are those of ShuffleNetV2 with a CenterNet head, as
in CoDeNet: ``s1.0.b1.dw`` is layer ``dw`` of branch ``b1`` of unit ``s1.0``.  A unit with branches halves its
map and shuffles both; one with ``pw1 dw pw2`` alone does so with the half of its map that it leaves as it is.
``dc0.off``, ``dc0.ddw``, ``dc0.pw`` compute offsets, sample by them, and double the map's sides.  Any other
layer takes the result of the layer before it, or of the last one whose result has its size, or a map of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import LayerTensors, MapName, Program, Step
from hw.conv.driver.route import Rearrangement
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors
from hw.conv.model.predict import busy_cycles
from hw.errors import InputError
from sim.engines.conv.table import Row

Int8 = NDArray[np.int8]
#: Offsets of a network are clamped to so many pixels, as CoDeNet bounds them.
BOUND = 6
#: Spread that maps are made to have: most of int8, and some of it clamped.
_SPREAD = 48.0


def build(rows: Sequence[Row], config: ConvConfig, *, seed: int = 0) -> Program:
    """Make the launch of a table; weights, offsets and the first map by ``seed``."""
    return _Builder(config, seed).run(rows)


@dataclass
class _Map:
    """A map that was written: its name, channels and sides, whether its rows are split."""

    name: str
    channels: int
    size: tuple[int, int]
    split: bool = False

    @property
    def whole(self) -> MapName:
        return MapName(name=self.name)

    def half(self, part: int) -> MapName:
        return MapName(name=self.name, part=part)


@dataclass
class _Builder:
    config: ConvConfig
    seed: int
    inputs: dict[str, Int8] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    maps: list[_Map] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)  # inputs that lie in blocks

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def run(self, rows: Sequence[Row]) -> Program:
        units: list[tuple[str, list[Row]]] = []
        for row in rows:
            unit = row.name.split(".b1.")[0].split(".b2.")[0]
            unit = row.name.rpartition(".")[0] if unit == row.name else unit
            if units and unit and units[-1][0] == unit:
                units[-1][1].append(row)
            else:
                units.append((unit, [row]))
        for n, (_, members) in enumerate(units):
            following = units[n + 1][1] if n + 1 < len(units) else []
            self._unit(members, splits=_shuffles(following) and not _branches(following))
        return Program(config=self.config, inputs=self.inputs, steps=tuple(in_order(self.steps)))

    def _unit(self, rows: list[Row], *, splits: bool) -> None:
        last = [row.name.rpartition(".")[2] for row in rows]
        if _branches(rows):
            first = [row for row in rows if ".b1." in row.name]
            other = [row for row in rows if ".b2." in row.name]
            for branch in (first, other):
                _check_chain(branch, (rows[0].channels, *rows[0].size))
            _check_shuffle(other[-1], (first[-1].outputs, *first[-1].out_size))
            source = self._source(rows[0])
            bypass = self._chain(first, source.whole)
            self._chain(other, source.whole, bypass=bypass.whole, split=splits)
        elif _shuffles(rows) and self.maps and self.maps[-1].split:
            before = self.maps[-1]
            half = (before.channels // 2, *before.size)
            _check_chain(rows, half)
            _check_shuffle(rows[-1], half)
            self._chain(rows, before.half(1), bypass=before.half(0), split=splits)
        elif last == ["off", "ddw", "pw"]:
            _check_decoder(rows)
            source = self._source(rows[1])
            self._chain(rows[1:], source.whole, offsets=rows[0], double=True)
        else:
            for chain in _chains(rows):
                source = self._source(chain[0])
                self._chain(chain, source.whole)

    def _source(self, row: Row) -> _Map:
        """Find the map that a layer takes, or make one."""
        for found in reversed(self.maps):
            if (found.channels, found.size, found.split) == (row.channels, row.size, False):
                return found
        name = f"(input of {row.name})"
        x = self.rng.integers(-128, 128, (row.channels, *row.size), dtype=np.int8)
        if _blocked(row):
            self.blocked.add(name)
            x = blocked_map(x, row.stride[0], row.pads[:2])
        self.inputs[name] = x
        return _Map(name, row.channels, row.size)

    def _chain(
        self,
        rows: list[Row],
        source: MapName,
        *,
        bypass: MapName | None = None,
        split: bool = False,
        offsets: Row | None = None,
        double: bool = False,
    ) -> _Map:
        """Add layers that follow each other, in jobs that share units where they can.

        ``offsets`` is the layer that computes those of a deformable one.
        """
        blocked = source.name in self.blocked
        layers = [
            self._layer(row, offsets if row.kind == "ddw" else None, blocked=blocked and not n)
            for n, row in enumerate(rows)
        ]
        end = Rearrangement(shuffle=bypass is not None, split=split, double=double)
        for group in self._groups([tensors.layer for tensors in layers]):
            members = tuple(layers[n] for n in group)
            is_last = group[-1] == len(layers) - 1
            leaving = end if is_last else Rearrangement()
            name = "+".join(rows[n].name for n in group)
            row = rows[group[-1]]
            step = Step(
                name=name,
                layers=members,
                source=source,
                result=name,
                bypass=bypass if is_last else None,
                rearrangement=leaving,
            )
            self.steps.append(step)
            channels = row.outputs * (2 if leaving.shuffle else 1)
            written = _Map(name, channels, step.size, leaving.split)
            self.maps.append(written)
            source = written.whole
        return self.maps[-1]

    def _groups(self, layers: list[ConvLayer]) -> list[list[int]]:
        """Pair neighbours of different units so that the sum of the slower ones' cycles is least."""
        best: list[tuple[int, list[list[int]]]] = [(0, [])]
        for n in range(len(layers)):
            cost, groups = best[n]
            found = (cost + busy_cycles(self.config, (layers[n],)), [*groups, [n]])
            if n and {layers[n - 1].kind.value, layers[n].kind.value} == {"depthwise", "pointwise"}:
                cost, groups = best[n - 1]
                pair = (layers[n - 1], layers[n])
                found = min(
                    found,
                    (cost + busy_cycles(self.config, pair), [*groups, [n - 1, n]]),
                    key=lambda option: (option[0], len(option[1])),
                )
            best.append(found)
        return best[-1][1]

    def _layer(self, row: Row, offsets: Row | None, *, blocked: bool) -> LayerTensors:
        """Make a layer with seeded weights, whose results have the spread of a map.

        Raises `InputError`, which names line and layer, for what the engine cannot do.
        """
        try:
            layer = row_layer(row, offsets, blocked=blocked)
            busy_cycles(self.config, (layer,))
        except InputError as error:
            raise row.error(error.field, error.value, error.legal) from error
        deformed, dot = layer.offsets is not Offsets.NONE, layer.dot
        top = 7 if self.config.weight_bits == 4 else 127
        shape = (row.outputs, row.channels // row.group, *row.kernel)
        w = self.rng.integers(-top, top + 1, shape, dtype=np.int8)
        if blocked:
            w = blocked_weights(w, row.stride[0])
        offset = None
        if deformed and not dot:
            reach = BOUND << self.config.fraction_bits
            offset = self.rng.integers(-reach, reach + 1, layer.out_size, dtype=np.int16)
        return LayerTensors(
            layer=layer,
            w=w,
            parameters=self._parameters(layer, w),
            offset=offset,
            dot=self._dot(layer) if dot else None,
        )

    def _parameters(self, layer: ConvLayer, w: Int8) -> ChannelParameters:
        """Scale sums, whose spread grows with the root of the products, to the spread of a map."""
        count = len(w)
        products = max(1.0, float(np.square(w.astype(np.float64)).sum(axis=(1, 2, 3)).mean()))
        bits = 0 if layer.offsets is Offsets.NONE else 2 * self.config.fraction_bits
        shift = 15
        while True:
            multiplier = _SPREAD / 74.0 / products**0.5 / 2.0**bits * 2.0**shift
            if multiplier >= 1 << 14:
                break
            shift += 1
        return ChannelParameters(
            bias=np.zeros(count, np.int64),
            multiplier=np.full(count, round(multiplier)),
            shift=np.full(count, shift),
            post=self.rng.integers(-8, 9, count),
        )

    def _dot(self, layer: ConvLayer) -> DotTensors:
        """Offsets of a few pixels, for each pixel of the result one, or one for each tap and axis."""
        numbers = 1 if layer.offsets is Offsets.SQUARE else 2 * layer.taps
        w = self.rng.integers(-127, 128, (numbers, layer.channels), dtype=np.int8)
        spread = 74.0 * 74.0 * layer.channels**0.5
        shift = 24
        multiplier = 3.0 * 2.0**self.config.fraction_bits / spread * 2.0**shift
        while multiplier >= 1 << 16:
            shift, multiplier = shift - 1, multiplier / 2
        return DotTensors(
            w=w,
            bias=np.zeros(numbers, np.int64),
            multiplier=np.full(numbers, round(multiplier)),
            shift=np.full(numbers, shift),
        )


def blocked_map(x: Int8, stride: int, pad: tuple[int, int]) -> Int8:
    """Return a map [C, H, W] as one of ``stride`` x ``stride`` pixels a pixel, [S S C, H / S, W / S].

    The first block begins ``pad`` rows above and columns left of the map, where pixels are 0.
    """
    above, left = pad
    channels, *size = x.shape
    rows, columns = (-(-side // stride) for side in size)
    padded = np.zeros((channels, rows * stride, columns * stride), np.int8)
    inside = x[:, : rows * stride - above, : columns * stride - left]
    padded[:, above : above + inside.shape[1], left : left + inside.shape[2]] = inside
    blocks = padded.reshape(channels, rows, stride, columns, stride).transpose(2, 4, 0, 1, 3)
    return blocks.reshape(-1, rows, columns)


def blocked_weights(w: Int8, stride: int) -> Int8:
    """Return weights [M, C, K, K] as those of a 1 x 1 convolution of a `blocked_map`, K up to ``stride``."""
    outputs, channels, *kernel = w.shape
    block = np.zeros((outputs, channels, stride, stride), np.int8)
    block[:, :, : kernel[0], : kernel[1]] = w
    return block.transpose(0, 2, 3, 1).reshape(outputs, -1, 1, 1)


def _blocked(row: Row) -> bool:
    """Say whether the windows of a layer have no pixel in common: the host lays its map out in blocks.

    Then it is a 1 x 1 convolution, and takes a word where a stem of three channels would take one for each
    pixel.
    """
    stride = row.stride[0]
    return (
        row.kind == "conv"
        and row.group == 1
        and row.stride == (stride, stride)
        and max(row.kernel) <= stride > 1
        and row.dilation == (1, 1)
        and row.out_size == (-(-row.rows // stride), -(-row.columns // stride))
        and max(row.pads[:2]) < stride
    )


def row_layer(row: Row, offsets: Row | None = None, *, blocked: bool = False) -> ConvLayer:
    """Return a line of a table as a layer; its offsets are computed as another line says, if one is given,
    and its map lies in blocks, of which each is a pixel, if it is ``blocked``.
    """
    if blocked:
        return ConvLayer(
            channels=row.channels * row.stride[0] ** 2,
            rows=row.out_rows,
            columns=row.out_columns,
            outputs=row.outputs,
        )
    kind = Offsets.NONE
    if row.kind == "ddw":
        kind = Offsets.SQUARE if offsets is None or offsets.outputs == 1 else Offsets.FREE
    return ConvLayer(
        channels=row.channels,
        rows=row.rows,
        columns=row.columns,
        outputs=row.outputs,
        kernel=row.kernel,
        strides=row.stride,
        dilations=row.dilation,
        pads=row.pads,
        group=row.group,
        offsets=kind,
        bound=None if kind is Offsets.NONE else BOUND,
        dot=offsets is not None,
    )


def _chains(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the layers that take the result of the one before."""
    chains: list[list[Row]] = []
    for row in rows:
        before = chains[-1][-1] if chains else None
        if before is not None and (before.outputs, before.out_size) == (row.channels, row.size):
            chains[-1].append(row)
        else:
            chains.append([row])
    return chains


def _check_chain(rows: Sequence[Row], given: tuple[int, int, int]) -> None:
    """Hold layers to the channels and sides of the map that they take, and of each other's results."""
    for row in rows:
        found = (row.channels, *row.size)
        for key, value, wanted in zip(("Cin", "H", "W"), found, given, strict=True):
            if value != wanted:
                raise row.error(key, value, f"{wanted}, of the map that the layer takes")
        given = (row.outputs, *row.out_size)


def _check_shuffle(row: Row, bypass: tuple[int, int, int]) -> None:
    """Hold the last layer of a unit to the map that its result is shuffled with."""
    if row.kind != "pw" or row.stride != (1, 1):
        raise row.error("kind", row.kind, "pw, of stride 1, where results are shuffled")
    for key, value, wanted in zip(("Cout", "OH", "OW"), (row.outputs, *row.out_size), bypass, strict=True):
        if value != wanted:
            raise row.error(key, value, f"{wanted}, of the map that the result is shuffled with")


def _check_decoder(rows: Sequence[Row]) -> None:
    """Hold a unit ``off ddw pw`` to what is carried out: offsets of each pixel, or of each of its taps."""
    off, deformed, pointwise = rows
    if deformed.kind != "ddw":
        raise deformed.error("kind", deformed.kind, "ddw, as the layer is called")
    for row in (off, pointwise):
        if row.kind != "pw" or row.stride != (1, 1) or row.group != 1:
            raise row.error("kind", row.kind, "pw, of stride 1 and one group, in a unit of off, ddw and pw")
    taps = deformed.kernel[0] * deformed.kernel[1]
    if off.outputs not in (1, 2 * taps):
        raise off.error(
            "Cout", off.outputs, f"1, an offset a pixel, or {2 * taps}, one for each tap and axis"
        )
    _check_chain([off], (deformed.channels, *deformed.size))
    _check_chain([pointwise], (deformed.outputs, *deformed.out_size))


def _branches(rows: Sequence[Row]) -> bool:
    return any(".b1." in row.name for row in rows)


def _shuffles(rows: Sequence[Row]) -> bool:
    """Say whether a unit ends in a shuffle: ``pw1 dw pw2`` of a stage, with the stage's name ``sN.M``."""
    ends = [row.name.rpartition(".")[2] for row in rows]
    stage = rows[0].name[:1] == "s" and rows[0].name[1:2].isdigit() if rows else False
    return stage and (ends == ["pw1", "dw", "pw2"] or _branches(rows))


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Say of each job whether it has to wait for those before it: it reads what one of them wrote.

    What waits for other reasons goes on doing so.
    """
    written = {step.result: n for n, step in enumerate(steps)}
    complete = -1
    ordered = []
    for n, step in enumerate(steps):
        names = [step.source.name] + ([step.bypass.name] if step.bypass is not None else [])
        needed = max((written.get(name, -1) for name in names), default=-1)
        after = step.after or needed > complete
        ordered.append(replace(step, after=after))
        if after:
            complete = n - 1
    return ordered
