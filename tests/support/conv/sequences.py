"""Jobs of every kind drawn at random, for launches one after the other without a reset between them."""

import contextlib
from dataclasses import dataclass, field, replace

import numpy as np

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.formats import channel_scales
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors, in_order
from hw.conv.driver.route import Rearrangement, sum_shift
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors
from hw.conv.driver.workload import MapName
from hw.errors import InputError

#: Kinds of jobs; those of two layers name both.
MODES = (
    *("strip", "strip", "dilated", "dilated", "taps", "bent", "bent", "grouped", "square", "dot", "far"),
    *("pointwise", "dense", "dense bent", "strip+pointwise", "bent+pointwise", "pointwise+strip"),
    *("pointwise+bent", "pointwise+dot", "shuffle", "shuffle", "double", "split"),
)
#: Fewest and most jobs of a launch.
JOBS = (5, 9)
_TRIES = 1000
#: Spread of results, in steps of int8.
_SPREAD = 60.0


@dataclass(frozen=True)
class Written:
    """A map that a later job may take."""

    name: MapName
    form: MapForm
    size: tuple[int, int]


@dataclass
class Drawing:
    """Draws the jobs of one program for ``config``.

    ``side`` is the longest side of most maps, ``longest`` the most cycles that a unit may take for a job.
    """

    seed: int
    config: ConvConfig
    side: int = 12
    longest: int = 3000
    inputs: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    maps: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)

    def launch(self, jobs=None):
        """Draw a launch, which may read results of earlier ones; return its number of jobs."""
        count = int(self.rng.integers(JOBS[0], JOBS[1] + 1)) if jobs is None else jobs
        for _ in range(count):
            self._draw()
        return count

    def program(self):
        """Return all jobs."""
        return ConvProgram(config=self.config, inputs=self.inputs, steps=tuple(in_order(self.steps)))

    def _draw(self):
        for _ in range(_TRIES):
            mode = str(self.rng.choice(MODES))
            with contextlib.suppress(InputError):  # more than the engine can do
                self._add(mode)
                return
        raise AssertionError("no job fits")

    def _add(self, mode):
        rng, number = self.rng, len(self.steps)
        kinds = mode.split("+")
        layers = [self._layer(kinds[0])]
        for kind in kinds[1:]:
            before = layers[0]
            layers.append(self._layer(kind, (before.outputs, *before.out_size)))
        shuffled = mode == "shuffle"
        leaving = Rearrangement(
            shuffle=shuffled,
            double=mode == "double" or (shuffled and rng.random() < 0.3),
            split=mode == "split" or (shuffled and rng.random() < 0.5),
        )
        if len(layers) == 1 and leaving == Rearrangement() and rng.random() < 0.1:
            layers = [replace(layers[0], raw=True)]
        last = layers[-1]
        step = ConvStep(
            name=f"{number} {mode}",
            layers=tuple(self._tensors(layer) for layer in layers),
            source=MapName(name=f"x{number}"),
            result=f"y{number}",
            bypass=MapName(name=f"b{number}") if shuffled else None,
            rearrangement=leaving,
            most_pixels=int(rng.integers(1, 30)) if rng.random() < 0.2 else None,
            after=bool(rng.random() < 0.1),
        )
        route = step.job.plan(self.config, beat_bits=128).route
        tap = route.tap
        if max(side.cycles for side in (tap, route.point) if side is not None) > self.longest:
            raise InputError("cycles", "of a job", f"at most {self.longest}")
        tensors = tuple(self._scaled(each, None if tap is None else tap.buffer) for each in step.layers)
        source = self._map(step.source.name, step.job.source_form, layers[0])
        bypass = step.bypass
        if bypass is not None:
            size = ConvLayer(
                channels=last.outputs, rows=last.out_size[0], columns=last.out_size[1], outputs=1
            )
            bypass = self._map(bypass.name, MapForm(channels=last.outputs), size)
        step = replace(step, layers=tensors, source=source, bypass=bypass)
        step.job.plan(self.config, beat_bits=128)  # of a half, which has a pitch
        self.steps.append(step)
        self._written(step)

    def _map(self, name, form, layer):
        """Take a map that was written, if one has the form and size, or make one."""
        size = (layer.rows, layer.columns)
        fitting = [found for found in self.maps if (found.form, found.size) == (form, size)]
        if fitting and self.rng.random() < 0.7:
            return fitting[int(self.rng.integers(len(fitting)))].name
        self.inputs[name] = self.rng.integers(-128, 128, (form.channels, *size), dtype=np.int8)
        self.maps.append(Written(MapName(name=name), form, size))
        return MapName(name=name)

    def _written(self, step):
        form, halves = step.job.result_form, [None]
        if step.rearrangement.split:
            form, halves = MapForm(channels=form.channels // 2), [0, 1]
        self.maps += [Written(MapName(name=step.result, part=half), form, step.size) for half in halves]

    def _layer(self, kind, taken=None):
        """Draw a layer: of a map that was written, if any fits, or of the ``taken`` (channels and sides)."""
        rng, config = self.rng, self.config
        fixed = taken is not None
        if not fixed and self.maps and rng.random() < 0.5:
            found = self.maps[int(rng.integers(len(self.maps)))]
            taken = (found.form.channels, *found.size)
        elif not fixed:
            most = int(rng.choice([8, config.lanes, 3 * config.lanes]))
            sides = rng.integers(1, self.side + 1, 2)
            if rng.random() < 0.25:  # more rows than the line buffer holds
                sides = (rng.integers(2 * self.side, 3 * self.side), rng.integers(3, 13))
            taken = tuple(int(n) for n in (rng.integers(1, most + 1), *sides))
        channels, rows, columns = taken
        changes = {
            "channels": channels,
            "rows": rows,
            "columns": columns,
            "zero": int(rng.integers(-128, 128)),
        }
        if kind in ("pointwise", "shuffle", "double", "split"):
            return ConvLayer(
                **changes, **self._dense(channels, even=kind in ("split", "shuffle")), **self._bounds()
            )
        changes |= self._kernel(kind, rows, columns)
        if kind.startswith("dense"):
            changes |= self._dense(channels)
        else:
            changes |= {"outputs": channels, "group": channels}
        if "bent" in kind or kind in ("grouped", "far"):
            changes |= {"offsets": Offsets.FREE, "masked": bool(config.mask and rng.random() < 0.4)}
            changes["bound"] = None if kind == "far" or rng.random() < 0.3 else int(rng.integers(0, 4))
        if kind == "grouped":
            changes["offset_group"] = int(
                rng.choice([n for n in range(1, channels + 1) if channels % n == 0][1:4] or [1])
            )
        if kind in ("square", "dot"):
            changes |= {"offsets": Offsets.SQUARE, "bound": int(rng.integers(0, 3)), "dot": kind == "dot"}
            if kind == "dot" and rng.random() < 0.5:
                changes["offsets"] = Offsets.FREE
        return ConvLayer(**changes, **self._bounds())

    def _bounds(self):
        low, high = sorted(int(n) for n in self.rng.integers(-128, 128, 2))
        return {"low": low, "high": high} if self.rng.random() < 0.1 else {}

    def _dense(self, channels, even=False):
        groups = [n for n in (1, 1, 2, 3, 4) if channels % n == 0]
        group = int(self.rng.choice(groups))
        outputs = group * int(self.rng.integers(1, max(2, 2 * self.config.lanes // group) + 1))
        if even:
            group, outputs = 1, 2 * outputs
        return {"group": group, "outputs": outputs}

    def _kernel(self, kind, rows, columns):
        """Draw kernel, strides, dilations and pads, the kernel not larger than the padded map."""
        rng = self.rng
        kernel, dilations = self._pair(4), self._pair(3)
        strides = self._pair(3) if rng.random() < 0.6 else (1, 1)
        if kind in ("strip", "dilated", "square", "dot"):
            kernel = (3, 3)
        if kind in ("strip", "dilated"):
            dilations = (1, 1) if kind == "strip" else (int(rng.integers(2, 5)),) * 2
        pads = [0, 0, 0, 0]
        for axis, size in enumerate((rows, columns)):
            reach = dilations[axis] * (kernel[axis] - 1) + 1
            first = max(0, reach - size) if rng.random() < 0.5 else reach // 2
            pads[axis] = min(reach - 1, first + int(rng.integers(0, 2)))
            pads[axis + 2] = max(int(rng.integers(0, reach)), reach - size - pads[axis])
        if kind == "dot":
            dilations, strides, pads = (1, 1), (1, 1), [1, 1, 1, 1]
        return {"kernel": kernel, "dilations": dilations, "strides": strides, "pads": tuple(pads)}

    def _pair(self, most):
        first, second = self.rng.integers(1, most + 1, 2)
        return int(first), int(second)

    def _tensors(self, layer):
        rng, config = self.rng, self.config
        top = 127 if config.weight_bits == 8 else 7
        shape = (layer.outputs, layer.channels // layer.group, *layer.kernel)
        w = rng.integers(-top, top + 1, shape, dtype=np.int8)
        offset = mask = dot = None
        if layer.dot:
            dot = self._dot(layer)
        elif layer.offsets is not Offsets.NONE:
            offset = self._offset(layer)
        if layer.masked:
            mask = rng.integers(0, 256, (layer.offset_group * layer.taps, *layer.out_size)).astype(np.uint8)
        neutral = np.zeros(layer.outputs, np.int64)
        given = ChannelParameters(bias=neutral, multiplier=neutral, shift=neutral, post=neutral)
        return LayerTensors(layer=layer, w=w, parameters=given, offset=offset, mask=mask, dot=dot)

    def _offset(self, layer):
        """Offsets of a few pixels, to the edges of the map, and now and then far away."""
        rng, unit = self.rng, 1 << self.config.fraction_bits
        square = layer.offsets is Offsets.SQUARE
        shape = layer.out_size if square else (2 * layer.offset_group * layer.taps, *layer.out_size)
        reals = rng.normal(0, 2, shape)
        far = rng.choice([-1.0, float(layer.rows - 1), float(layer.rows), -20.0, 20.0], shape)
        values = np.where(rng.random(shape) < 0.15, far, reals)
        return np.clip(np.floor(values * unit + 0.5), -(2**15), 2**15 - 1).astype(np.int16)

    def _dot(self, layer):
        """Offsets of about two pixels."""
        rng = self.rng
        numbers = 1 if layer.offsets is Offsets.SQUARE else 2 * layer.taps
        w = rng.integers(-127, 128, (numbers, layer.channels), dtype=np.int8)
        factor = 2.0 * 2.0**self.config.fraction_bits / (74.0 * 74.0 * layer.channels**0.5)
        multiplier, shift = channel_scales(np.full(numbers, factor))
        return DotTensors(w=w, bias=rng.integers(-1000, 1001, numbers), multiplier=multiplier, shift=shift)

    def _scaled(self, tensors, buffer):
        """Scale sums, whose spread grows with the root of the products, to the spread of a map."""
        rng, layer = self.rng, tensors.layer
        at_taps = layer.kind is not LayerKind.POINTWISE
        bits = sum_shift(self.config, layer, buffer if at_taps else None)
        if layer.offsets is not Offsets.NONE:
            bits = 2 * self.config.fraction_bits + 8 * layer.masked
        products = np.square(tensors.w.astype(np.float64)).reshape(layer.outputs, -1).sum(axis=1)
        spread = 74.0 * np.sqrt(np.maximum(products, 1.0)) * 2.0**bits
        bias = rng.integers(-100, 101, layer.outputs) << bits
        if layer.raw:
            shift = np.full(layer.outputs, int(rng.integers(0, 20)))
            given = ChannelParameters(
                bias=bias, multiplier=np.ones_like(bias), shift=shift, post=np.zeros_like(bias)
            )
        else:
            multiplier, shift = channel_scales(_SPREAD / spread)
            post = rng.integers(-20, 21, layer.outputs)
            given = ChannelParameters(bias=bias, multiplier=multiplier, shift=shift, post=post)
        return replace(tensors, parameters=given)
