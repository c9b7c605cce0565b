"""Maps in memory: the movers' fields of a descriptor."""

from dataclasses import dataclass

from hw.conv.config import ConvConfig
from hw.conv.driver.blocks import BlockPlan, Chunks, block_chunks, row_chunks
from hw.conv.driver.form import MapForm
from hw.conv.driver.route import PointSide, Route
from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class MapPlace:
    """Place and layout of a map in memory."""

    form: MapForm  #: Of its pixels.
    addresses: tuple[int, ...]  #: For each port, in bytes from its base pointer.
    #: One half of a map whose rows are split: each row is followed by as many bytes of the other half.
    half: bool = False

    def fields(self, side: str) -> dict[str, int]:
        """Return the addresses of a map of ``side``: "in", "bypass" or "out"."""
        return {f"{side}_address_{port}": address for port, address in enumerate(self.addresses)}


def source_fields(
    config: ConvConfig, route: Route, blocks: BlockPlan | None, place: MapPlace
) -> dict[str, int]:
    """Return the fields of the map that is read: row by row, or in ``blocks``."""
    size = route.first.rows, route.first.columns
    chunks = row_chunks(size) if blocks is None else block_chunks(size, blocks, pitched=place.half)
    values = _read_fields(config, "in", chunks, place, size[1])
    total = size[0] * size[1] * place.form.words(config)
    return values | {"in_words": place.form.part_words(config), "in_total_words": total}


def bypass_fields(config: ConvConfig, point: PointSide, blocks: BlockPlan, place: MapPlace) -> dict[str, int]:
    """Return the fields of the map that is shuffled into the results.

    Raises `InputError` if it has another number of channels, or more than one part.
    """
    layer, form = point.layer, point.form
    if place.form != MapForm(channels=layer.outputs):
        raise InputError("form of the bypass", place.form, f"one part of {layer.outputs} channels")
    chunks = block_chunks(layer.out_size, blocks, pitched=place.half)
    pixels = layer.out_size[0] * layer.out_size[1]
    return _read_fields(config, "bypass", chunks, place, layer.out_size[1]) | {
        "bypass_in_words": place.form.words(config),
        "bypass_total_words": pixels * place.form.words(config),
        "bypass_total_pixels": pixels,
        "bypass_parts": form.parts,
        "bypass_channels": layer.outputs // form.parts,
        "bypass_words": form.words(config),
    }


def result_fields(config: ConvConfig, route: Route, place: MapPlace) -> dict[str, int]:
    """Return the fields of the map that is written: one command of the DMA, or one a row with a pitch."""
    copies = 2 if route.rearrangement.double else 1
    rows, columns = (copies * side for side in route.last.out_size)
    count, pixels = (rows, columns) if place.half else (1, rows * columns)
    parts = pixels * place.form.parts
    values = {
        "out_map_rows": count,
        "out_map_parts": parts,
        "out_map_words": place.form.part_words(config),
        "out_total_words": rows * columns * place.form.words(config),
    }
    for port, units in enumerate(place.form.units(config)):
        values |= {
            f"out_pitch_{port}": parts * units * (2 if place.half else 1),
            f"out_bytes_{port}": parts * units,
            f"out_units_{port}": units,
        }
    return values


def _read_fields(
    config: ConvConfig, side: str, chunks: Chunks, place: MapPlace, columns: int
) -> dict[str, int]:
    """Return the fields that all maps have that are read; the mover counts parts of pixels."""
    parts = place.form.parts
    values = {f"{side}_{name}": value for name, value in chunks._asdict().items()}
    values |= {f"{side}_{name}": parts * getattr(chunks, name) for name in ("pixels", "last_pixels")}
    for port, units in enumerate(place.form.units(config)):
        pixel = parts * units
        values |= {
            f"{side}_pitch_{port}": columns * pixel * (2 if place.half else 1),
            f"{side}_bytes_{port}": chunks.pixels * pixel,
            f"{side}_last_bytes_{port}": chunks.last_pixels * pixel,
            f"{side}_units_{port}": units,
        }
    return values
