"""A layer table as one launch: layers are assigned to jobs, jobs to each other's maps; tensors are seeded.

A table has sizes but no edges.  Names define the edges where they are those of ShuffleNetV2 with a CenterNet
head, as in CoDeNet: ``s1.0.b1.dw`` is layer ``dw`` of branch ``b1`` of unit ``s1.0``.  A unit with branches
halves its map and shuffles both results.  A unit ``pw1 dw pw2`` shuffles its result with the unused half of
its map. ``dc0.off``, ``dc0.ddw``, ``dc0.pw`` compute offsets, sample by them, and double the map's sides.
Any other layer takes the result of the previous layer, or the last result of its size, or a map of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.blocked import blocked_map, blocked_weights, in_blocks
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors, in_order
from hw.conv.driver.route import Rearrangement
from hw.conv.driver.seeded import SeededTensors
from hw.conv.driver.table import Row
from hw.conv.driver.workload import MapName, busy_cycles
from hw.errors import InputError
from hw.launch import Int8

#: Whole pixels to which offsets of a network are clamped, as in CoDeNet.
BOUND = 6


def build(rows: Sequence[Row], config: ConvConfig, *, seed: int = 0) -> ConvProgram:
    """Return the launch of a table; ``seed`` determines weights, offsets and the first map."""
    return _Builder(config, seed).run(rows)


@dataclass
class _WrittenMap:
    """A map that was written."""

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
    steps: list[ConvStep] = field(default_factory=list)
    maps: list[_WrittenMap] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)  # inputs laid out in blocks

    def __post_init__(self) -> None:
        self.seeded = SeededTensors(self.config, self.seed)

    def run(self, rows: Sequence[Row]) -> ConvProgram:
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
        return ConvProgram(config=self.config, inputs=self.inputs, steps=tuple(in_order(self.steps)))

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

    def _source(self, row: Row) -> _WrittenMap:
        """Return the map that a layer takes, a new one if no result has its size."""
        for found in reversed(self.maps):
            if (found.channels, found.size, found.split) == (row.channels, row.size, False):
                return found
        name = f"(input of {row.name})"
        x = self.seeded.map(row.channels, row.size)
        if in_blocks(row):
            self.blocked.add(name)
            x = blocked_map(x, row.stride[0], row.pads[:2])
        self.inputs[name] = x
        return _WrittenMap(name, row.channels, row.size)

    def _chain(
        self,
        rows: list[Row],
        source: MapName,
        *,
        bypass: MapName | None = None,
        split: bool = False,
        offsets: Row | None = None,
        double: bool = False,
    ) -> _WrittenMap:
        """Add a chain of layers, in jobs that share units where they can.

        ``offsets`` is the layer that computes the offsets of a deformable one.
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
            step = ConvStep(
                name=name,
                layers=members,
                source=source,
                result=name,
                bypass=bypass if is_last else None,
                rearrangement=leaving,
            )
            self.steps.append(step)
            channels = row.outputs * (2 if leaving.shuffle else 1)
            written = _WrittenMap(name, channels, step.size, leaving.split)
            self.maps.append(written)
            source = written.whole
        return self.maps[-1]

    def _groups(self, layers: list[ConvLayer]) -> list[list[int]]:
        """Pair neighbours of different units such that the sum of the slower units' cycles is least."""
        cycles = [busy_cycles(self.config, (layer,)) for layer in layers]
        best: list[tuple[int, list[list[int]]]] = [(0, [])]
        for n in range(len(layers)):
            cost, groups = best[n]
            found = (cost + cycles[n], [*groups, [n]])
            if n and {layers[n - 1].kind.value, layers[n].kind.value} == {"depthwise", "pointwise"}:
                cost, groups = best[n - 1]
                found = min(
                    found,
                    (cost + max(cycles[n - 1 : n + 1]), [*groups, [n - 1, n]]),
                    key=lambda option: (option[0], len(option[1])),
                )
            best.append(found)
        return best[-1][1]

    def _layer(self, row: Row, offsets: Row | None, *, blocked: bool) -> LayerTensors:
        """Return a layer with seeded weights, whose results have the spread of a map.

        Raises `InputError`, with line and layer, for a layer that the engine cannot do.
        """
        try:
            layer = row_layer(row, offsets, blocked=blocked)
            busy_cycles(self.config, (layer,))
        except InputError as error:
            raise row.error(error.field, error.value, error.legal) from error
        w = self.seeded.weights((row.outputs, row.channels // row.group, *row.kernel))
        if blocked:
            w = blocked_weights(w, row.stride[0])
        return self.seeded.layer(layer, w)


def row_layer(row: Row, offsets: Row | None = None, *, blocked: bool = False) -> ConvLayer:
    """Return a line of a table as a layer, whose offsets the line ``offsets`` computes, if there is one.

    A ``blocked`` map has blocks of pixels for pixels.
    """
    if blocked:
        return ConvLayer(
            channels=row.channels * row.stride[0] ** 2,
            rows=row.out_rows,
            columns=row.out_columns,
            outputs=row.outputs,
            idle_channels=row.channels * (row.stride[0] ** 2 - row.kernel[0] * row.kernel[1]),
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
    """Split layers into chains, in which each takes the result of the one before."""
    chains: list[list[Row]] = []
    for row in rows:
        before = chains[-1][-1] if chains else None
        if before is not None and (before.outputs, before.out_size) == (row.channels, row.size):
            chains[-1].append(row)
        else:
            chains.append([row])
    return chains


def _check_chain(rows: Sequence[Row], given: tuple[int, int, int]) -> None:
    """Check that each layer has the channels and sides of the map that it takes."""
    for row in rows:
        found = (row.channels, *row.size)
        for key, value, wanted in zip(("Cin", "H", "W"), found, given, strict=True):
            if value != wanted:
                raise row.error(key, value, f"{wanted}, of the map that the layer takes")
        given = (row.outputs, *row.out_size)


def _check_shuffle(row: Row, bypass: tuple[int, int, int]) -> None:
    """Check that the last layer of a unit has the size of the map that its result is shuffled with."""
    if row.kind != "pw" or row.stride != (1, 1):
        raise row.error("kind", row.kind, "pw, of stride 1, where results are shuffled")
    for key, value, wanted in zip(("Cout", "OH", "OW"), (row.outputs, *row.out_size), bypass, strict=True):
        if value != wanted:
            raise row.error(key, value, f"{wanted}, of the map that the result is shuffled with")


def _check_decoder(rows: Sequence[Row]) -> None:
    """Check a unit ``off ddw pw``: one offset a pixel, or one for each tap and axis."""
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
    """Return whether a unit ends in a shuffle: ``pw1 dw pw2`` of a stage, with the stage's name ``sN.M``."""
    ends = [row.name.rpartition(".")[2] for row in rows]
    stage = rows[0].name[:1] == "s" and rows[0].name[1:2].isdigit() if rows else False
    return stage and (ends == ["pw1", "dw", "pw2"] or _branches(rows))
