"""The route of a job through the units, and the lanes of channels along it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hw.conv.config import MASK_BITS, TAP_SUM_BITS, ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.blocks import PixelWords, room_pixels
from hw.conv.driver.buffer import BufferPlan, plan_buffer, sample_digits
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.weights import PointLanes, WeightTile, tiles
from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Rearrangement:
    """The order in which results of a pointwise layer leave."""

    #: Each row leaves part by part: first that of all its pixels, then the other.
    split: bool = False
    double: bool = False  #: Each pixel and each row leave twice: nearest neighbour upsampling.
    shuffle: bool = False  #: Channels alternate with those of another map, which come first.


#: Results leave as they are made.
PLAIN = Rearrangement()


@dataclass(frozen=True, kw_only=True)
class TapSide:
    """The depthwise unit's share: ``layer``, with the line buffer planned in ``buffer``."""

    layer: ConvLayer
    buffer: BufferPlan

    @property
    def cycles(self) -> int:
        """Cycles without stalls: one more a row of results."""
        rows, columns = self.layer.out_size
        walked = self.layer.columns + self.layer.pads[3] if self.buffer.strip else columns * self.buffer.steps
        return rows * (walked * self.buffer.words * self.buffer.digits + 1)


@dataclass(frozen=True, kw_only=True)
class PointSide:
    """The pointwise array's share."""

    layer: ConvLayer
    form: MapForm  #: Form of its results, before any shuffle.
    #: ``lanes``, ``tiles``: lanes of its channels, and its tiles.
    lanes: PointLanes
    tiles: tuple[WeightTile, ...]

    @property
    def words(self) -> int:
        """Words of a pixel of its input."""
        return self.lanes.words * self.lanes.taps * self.lanes.digits

    @property
    def cycles(self) -> int:
        """Cycles without stalls: one for each pixel and tile."""
        rows, columns = self.layer.out_size
        return rows * columns * len(self.tiles)


@dataclass(frozen=True, kw_only=True)
class Route:
    """A job's layers, and their plan as far as it does not depend on addresses."""

    #: ``tap``, ``point``: shares of the units; both have the same layer where samples leave the depthwise
    #: unit.
    tap: TapSide | None
    point: PointSide | None
    tap_first: bool  #: The map is read into the line buffer.
    #: ``first``, ``last``: the layers that take the map and produce the result.
    first: ConvLayer
    last: ConvLayer
    #: ``source``, ``result``: forms of the maps in memory.
    source: MapForm
    sampled: MapForm  #: Form of the map that goes to the line buffer, or of the source.
    result: MapForm
    rearrangement: Rearrangement  #: Of the result.

    @property
    def samples(self) -> bool:
        """Samples of one layer flow from unit to unit."""
        return self.first.kind is LayerKind.SAMPLES

    def sum_bits(self, config: ConvConfig, layer: ConvLayer) -> int:
        """Count the fraction bits of the sums of one of its layers."""
        tap = self.tap
        return sum_shift(config, layer, tap.buffer if tap is not None and tap.layer == layer else None)


@lru_cache(maxsize=256)
def plan_route(
    config: ConvConfig,
    layers: tuple[ConvLayer, ...],
    source: MapForm,
    result: MapForm,
    rearrangement: Rearrangement,
) -> Route:
    """Plan the route of one layer, or of a depthwise and a pointwise one in either order.

    Raises `InputError` for layers or maps that do not follow each other, or that the configuration cannot do.
    """
    _check_layers(layers)
    first, last = layers[0], layers[-1]
    sampled = next((layer for layer in layers if layer.kind is not LayerKind.POINTWISE), None)
    pointwise = next((layer for layer in layers if layer.kind is not LayerKind.DEPTHWISE), None)
    for name, form, channels in (
        ("source", source, first.channels),
        ("result", result, last.outputs * (2 if rearrangement.shuffle else 1)),
    ):
        if form.channels != channels:
            raise InputError(f"channels of the {name}", form.channels, str(channels))
    if rearrangement.split and result.parts != 2:
        raise InputError("parts", result.parts, "2 for a map whose rows are split")

    middle = source if sampled in (first, None) else result
    if sampled is not None and middle.groups != sampled.offset_group:
        raise InputError("groups of the map", middle.groups, f"{sampled.offset_group}, as offsets have them")
    if last is not pointwise:
        if rearrangement != Rearrangement():
            raise InputError("rearrangement", rearrangement, "none behind a depthwise layer")
        if result != middle:
            raise InputError("result", result, f"{middle}, as the map that is sampled")
    tap = None
    if sampled is not None:
        buffer = plan_buffer(config, sampled, middle, in_memory=sampled is first)
        tap = TapSide(layer=sampled, buffer=buffer)
    point = None if pointwise is None else _point_side(config, pointwise, source, result)
    if point is not None:
        words = point.form.words(config)
        room_pixels(config, PixelWords(point.words, words, words if rearrangement.shuffle else 0))
    return Route(
        tap=tap,
        point=point,
        tap_first=sampled is first,
        first=first,
        last=last,
        source=source,
        sampled=middle,
        result=result,
        rearrangement=rearrangement,
    )


def sum_shift(config: ConvConfig, layer: ConvLayer, buffer: BufferPlan | None) -> int:
    """Count the fraction bits of a layer's sums: 2 F of samples, 8 of masks, 0 of plain pixels."""
    plain = layer.kind is LayerKind.SAMPLES and layer.offsets is Offsets.NONE
    if buffer is None or buffer.strip or plain or layer.kind is LayerKind.POINTWISE:
        return 0
    return 2 * config.fraction_bits + (MASK_BITS if layer.masked else 0)


def _check_layers(layers: Sequence[ConvLayer]) -> None:
    kinds = {layer.kind for layer in layers}
    if len(layers) != 1 and not (len(layers) == 2 and kinds == {LayerKind.DEPTHWISE, LayerKind.POINTWISE}):
        names = [layer.kind.value for layer in layers]
        raise InputError("layers", names, "one, or a depthwise and a pointwise one")
    if len(layers) == 2:
        taken = (layers[1].channels, layers[1].rows, layers[1].columns)
        given = (layers[0].outputs, *layers[0].out_size)
        if taken != given:
            raise InputError("map of the second layer", taken, f"{given}, the first one's result")


def _point_side(config: ConvConfig, layer: ConvLayer, source: MapForm, result: MapForm) -> PointSide:
    """Plan a pointwise layer; a depthwise layer before it keeps the form of the source."""
    samples = layer.kind is LayerKind.SAMPLES
    form = MapForm(channels=layer.outputs, parts=result.parts, groups=result.groups)
    lanes = PointLanes(
        inputs=source.lanes(config),
        outputs=form.lanes(config),
        words=source.words(config),
        group=layer.group,
        taps=layer.taps if samples else 1,
        digits=sample_digits(config, layer) if samples else 1,
    )
    _check_sum(config, layer)
    return PointSide(layer=layer, form=form, lanes=lanes, tiles=tuple(tiles(config, lanes)))


def _check_sum(config: ConvConfig, layer: ConvLayer) -> None:
    """Check the width of the pointwise sum: products of inputs and weights, and a bias as large again."""
    samples = layer.offsets is not Offsets.NONE
    largest = 128
    if samples:
        masked = 255 if layer.masked else 1
        largest = max(128 + layer.zero, 127 - layer.zero) * 4**config.fraction_bits * masked
    products = layer.channels // layer.group * layer.taps
    width = TAP_SUM_BITS if samples else config.pointwise_bits
    most = (1 << width - 2) // (largest << config.weight_bits - 1)
    if products > most:
        raise InputError("products of a sum", products, f"at most {most} in {width} bits")
