"""Plans a job: layers and places of tensors become the fields of a descriptor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hw.conv.config import OFFSET_BITS, ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.core.pointwise.pointwise import PointwiseUnit
from hw.conv.driver.blocks import BlockPlan, PixelWords, plan_blocks
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.maps import MapPlace, bypass_fields, result_fields, source_fields
from hw.conv.driver.route import PLAIN, PointSide, Rearrangement, Route, TapSide, plan_route
from hw.conv.driver.weights import packet_beats, packets, tile_beats
from hw.conv.movers import descriptor
from hw.errors import InputError

#: Share of a job's cycles that smaller blocks must save: weights are read again for each block.
_WORTH = 0.03


@dataclass(frozen=True, kw_only=True)
class JobPlaces:
    """Places of a job's tensors; ``weights``, ``tiles`` and ``offsets`` in bytes from their base pointers."""

    source: MapPlace
    result: MapPlace
    bypass: MapPlace | None = None
    weights: int = 0
    tiles: int = 0
    offsets: int = 0

    @property
    def at_zero(self) -> JobPlaces:
        """The same maps, with every address 0."""
        zeros = (0,) * len(self.source.addresses)
        return JobPlaces(
            source=replace(self.source, addresses=zeros),
            result=replace(self.result, addresses=zeros),
            bypass=None if self.bypass is None else replace(self.bypass, addresses=zeros),
        )


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """The fields of a descriptor, and their route; blocks only with a pointwise layer."""

    route: Route
    blocks: BlockPlan | None
    fields: Mapping[str, int]

    def at(self, places: JobPlaces) -> PlannedJob:
        """Return the job with its tensors at ``places``, whose maps have the forms it was planned for."""
        values = dict(self.fields) | places.source.fields("in") | places.result.fields("out")
        if places.bypass is not None:
            values |= places.bypass.fields("bypass")
        for name, size in (("weights", "weight_bytes"), ("tiles", "tile_bytes"), ("offsets", "offset_bytes")):
            if size in values:
                values[name] = getattr(places, name)
        return replace(self, fields=values)


def plan_job(
    config: ConvConfig,
    layers: Sequence[ConvLayer],
    places: JobPlaces,
    *,
    beat_bits: int,
    rearrangement: Rearrangement = PLAIN,
    most_pixels: int | None = None,
    after: bool = False,
) -> PlannedJob:
    """Plan a job of one layer, or of a depthwise and a pointwise one in either order.

    * ``layers``: one or two; the second takes the first one's result.
    * ``places``: of their tensors; the result of a shuffle has the channels of both maps.
    * ``beat_bits``: bits of a beat of the port of weights.
    * ``rearrangement``: of the results of a pointwise layer that is the last.
    * ``most_pixels``: most pixels of a block; without it the fastest blocks are chosen.
    * ``after``: the map is read after all results of earlier jobs are in memory.

    Raises `InputError` for layers or maps that do not follow each other, or that this configuration cannot
    do.
    """
    _check_places(config, places, rearrangement)
    route = plan_route(config, tuple(layers), places.source.form, places.result.form, rearrangement)
    values = {"flags": _flags(route) | (descriptor.AFTER if after else 0)}
    blocks = None
    if route.tap is not None:
        values |= _tap_fields(config, route.tap, beat_bits)
    if route.point is not None:
        beats = [tile_beats(config, beat_bits, first=tile.first) for tile in route.point.tiles]
        blocks = _blocks(config, route, route.point, places, most_pixels, beats)
        values |= _point_fields(config, route, route.point, blocks, sum(beats) * beat_bits // 8)
        if places.bypass is not None:
            values |= bypass_fields(config, route.point, blocks, places.bypass)
    if route.tap is not None and route.point is not None:
        words = route.point.words if route.tap_first else route.point.form.words(config)
        values["middle_total_words"] = route.first.out_size[0] * route.first.out_size[1] * words
    values |= source_fields(config, route, None if route.tap_first else blocks, places.source)
    values |= result_fields(config, route, places.result)
    return PlannedJob(route=route, blocks=blocks, fields=values).at(places)


def _check_places(config: ConvConfig, places: JobPlaces, rearrangement: Rearrangement) -> None:
    for name in ("source", "result", "bypass"):
        place = getattr(places, name)
        if place is not None and len(place.addresses) != config.ports:
            raise InputError(
                f"addresses of the {name}", place.addresses, f"{config.ports}, one for each port"
            )
    if (places.bypass is not None) != rearrangement.shuffle:
        raise InputError("bypass", places.bypass, "given with a shuffle, and only then")
    if places.result.half and rearrangement.split:
        raise InputError("half", True, "false for a result whose rows are split")


def _flags(route: Route) -> int:
    tap, point, leaving = route.tap, route.point, route.rearrangement
    given = {
        descriptor.DEPTHWISE: tap is not None,
        descriptor.POINTWISE: point is not None,
        descriptor.POINTWISE_FIRST: tap is not None and not route.tap_first,
        descriptor.SAMPLES: route.samples,
        descriptor.BYPASS: leaving.shuffle,
        descriptor.SPLIT: leaving.split,
        descriptor.DOUBLE: leaving.double,
        descriptor.POINT_RAW: point is not None and point.layer.raw,
    }
    if tap is not None:
        given |= {
            descriptor.STRIP: tap.buffer.strip,
            descriptor.GATHER: tap.buffer.gather,
            descriptor.MASKED: tap.layer.masked,
            descriptor.FREE: tap.layer.offsets is Offsets.FREE,
            descriptor.SQUARE: tap.layer.offsets is Offsets.SQUARE,
            descriptor.DOT: tap.layer.dot,
            descriptor.TAP_RAW: tap.layer.raw and not route.samples,
        }
    return sum(flag for flag, on in given.items() if on)


def _tap_fields(config: ConvConfig, tap: TapSide, beat_bits: int) -> dict[str, int]:
    layer, buffer = tap.layer, tap.buffer
    values = {
        name: getattr(buffer, name)
        for name in ("words", "slots", "row_words", "split", "steps", "first_need", "first_free")
    }
    pairs = {
        "out": layer.out_size,
        "kernel": layer.kernel,
        "stride": layer.strides,
        "dilation": layer.dilations,
        "pad": layer.pads[:2],
    }
    for name, (rows, columns) in pairs.items():
        values |= {f"{name}_rows": rows, f"{name}_columns": columns}
    values |= {
        "rows": layer.rows,
        "columns": layer.columns,
        "group_slices": buffer.group_slices,
        "digits": buffer.digits,
        "tap_zero": layer.zero,
        "tap_low": layer.low,
        "tap_high": layer.high,
    }
    if buffer.entries:
        most = (1 << OFFSET_BITS - 1) - 1
        bound = None if layer.bound is None else layer.bound << config.fraction_bits
        pixels = layer.out_size[0] * layer.out_size[1]
        values |= {
            "offset_pixels": pixels,
            "offset_entries": buffer.entries,
            "offset_passes": buffer.passes,
            "offset_total_entries": pixels * buffer.entries,
            "offset_units": buffer.entry_units,
            "offset_low": -most - 1 if bound is None else -bound,
            "offset_high": most if bound is None else bound,
        }
        if not layer.dot:
            values["offset_bytes"] = 2 * pixels * buffer.entries * buffer.entry_units
    weights = packets(config, tap.layer, buffer)
    if weights:
        beats = sum(packet_beats(records, beat_bits) for _, records in weights)
        values["weight_bytes"] = beats * beat_bits // 8
    return values


def _blocks(
    config: ConvConfig,
    route: Route,
    point: PointSide,
    places: JobPlaces,
    most: int | None,
    beats: Sequence[int],
) -> BlockPlan:
    """Choose blocks: the largest, or a half, a quarter or an eighth if the job is faster by `_WORTH`.

    The array waits for its first block, and the next unit waits for the last block.  But the ``beats`` of all
    tiles are read again for every block.
    """
    result_words = point.form.words(config)
    taps = 0 if route.tap is None else route.tap.cycles
    pixels = point.layer.out_size[0] * point.layer.out_size[1]
    before, behind = pixels * point.words, pixels * route.result.words(config)
    if route.tap_first:
        before = max(before, taps)
    else:
        behind = max(behind, taps)

    def cycles(blocks: BlockPlan) -> float:
        sweeps = sum(PointwiseUnit.sweep_cycles(config, pixels=blocks.pixels, beats=tile) for tile in beats)
        steady = max(taps, blocks.blocks * sweeps)
        return steady + (before + behind) * blocks.pixels / pixels

    def fit(most: int | None) -> BlockPlan:
        return plan_blocks(
            config,
            point.layer.out_size,
            # The bypass has as many channels and parts as the results.
            PixelWords(point.words, result_words, 0 if places.bypass is None else result_words),
            most=most,
            whole_rows=whole_rows,
            pitched=pitched,
        )

    # Blocks that are read must keep to rows that are apart in memory.
    pitched = not route.tap_first and places.source.half
    pitched |= places.bypass is not None and places.bypass.half
    whole_rows = route.rearrangement.split or route.rearrangement.double
    largest = fit(most)
    if most is not None:
        return largest
    least = point.layer.out_size[1] if whole_rows else 1
    parts = {max(least, -(-largest.pixels // share)) for share in (2, 4, 8)}
    best = min((fit(pixels) for pixels in sorted(parts, reverse=True)), key=cycles)
    return best if cycles(best) < (1 - _WORTH) * cycles(largest) else largest


def _point_fields(
    config: ConvConfig, route: Route, point: PointSide, blocks: BlockPlan, tile_bytes: int
) -> dict[str, int]:
    layer = point.layer
    # In blocks that are not whole rows each pixel counts as a row.
    whole_rows = route.rearrangement.split or route.rearrangement.double
    columns = layer.out_size[1] if whole_rows else 1
    return {
        "block": blocks.pixels,
        "last_block": blocks.last,
        "blocks": blocks.blocks,
        "block_words": point.words,
        "out_words": point.form.words(config),
        "point_low": layer.low,
        "point_high": layer.high,
        "drain_rows": blocks.pixels // columns,
        "drain_last_rows": blocks.last // columns,
        "drain_columns": columns,
        "drain_words": point.form.part_words(config),
        "drain_parts": point.form.parts,
        "part_words": route.result.part_words(config),
        "tile_bytes": tile_bytes,
        "tile_repeats": blocks.blocks,
    }
