"""The use of the line buffer by a layer: the rows that it holds, and when a row of results may begin."""

from dataclasses import dataclass

from hw.conv.config import MAX_DIGITS, OFFSET_BITS, TAP_LAYER_WORDS, ConvConfig
from hw.conv.core.layouts import SLOT_BITS, Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.errors import InputError

#: Entries of the offset store that are kept free.
_FREE_ENTRIES = 4
_MOST_SPLIT = 3
_MOST_SLOTS = 2**SLOT_BITS - 2


@dataclass(frozen=True, kw_only=True)
class BufferPlan:
    """Fields of `hw.conv.core.layouts.TapCommand` and `OffsetCommand` that are derived from a layer."""

    #: ``strip``, ``gather``: the layer is a strip, plain 3 x 3; samples outside the line buffer are read from
    #: memory.
    strip: bool
    gather: bool
    #: ``words``, ``slots``, ``row_words``, ``split``, ``steps``, ``first_need``, ``first_free``,
    #: ``group_slices``, ``entries``: as there; ``entries`` is 0 without offsets.
    words: int
    slots: int
    row_words: int
    split: int
    steps: int
    first_need: int
    first_free: int
    group_slices: int
    entries: int
    entry_units: int  #: Units of 16 bits of an entry in memory.
    digits: int  #: Bytes of a sample that leaves.
    passes: int  #: Pairs of numbers of offsets that are computed for a pixel; 0 where none are.


def plan_buffer(config: ConvConfig, layer: ConvLayer, form: MapForm, *, in_memory: bool = True) -> BufferPlan:
    """Plan a layer that samples a map of ``form``, from memory or from the pointwise unit.

    Raises `InputError` for a layer that this configuration cannot do.
    """
    needs = (
        (layer.masked, "masked", config.mask),
        (layer.dot, "dot", config.dot_words > 0),
        (layer.kind is LayerKind.SAMPLES, "samples", config.samples),
    )
    for needed, name, present in needs:
        if needed and not present:
            raise InputError(name, needed, f"{present} on an engine without it")
    if layer.bound is not None and layer.bound << config.fraction_bits >= 1 << OFFSET_BITS - 1:
        most = (1 << OFFSET_BITS - 1) - 1 >> config.fraction_bits
        raise InputError("bound", layer.bound, f"at most {most}")
    pixel_words = form.words(config)
    if pixel_words > TAP_LAYER_WORDS:
        raise InputError("channels", layer.channels, f"at most {TAP_LAYER_WORDS * config.lanes}")
    if layer.dot and layer.offsets is Offsets.FREE and layer.kind is LayerKind.SAMPLES and config.taps > 1:
        raise InputError("dot", True, f"false for samples, which are one a cycle and not {config.taps}")
    if _goes_by_strips(config, layer, pixel_words):
        plan = _rows(config, layer, pixel_words, strip=True)
        if plan is not None:
            return plan
    steps = _steps(config, layer)
    if layer.kind is LayerKind.DEPTHWISE and steps * pixel_words > config.tap_words:
        legal = f"at most {config.tap_words}, {steps} for each word of a pixel"
        raise InputError("words of weights", steps * pixel_words, legal)
    plan = _rows(config, layer, pixel_words, strip=False)
    if plan is None:
        rows = _slots(config, layer, pixel_words, 0, strip=False)
        legal = f"within the {rows} rows of {layer.columns} pixels that the line buffer holds"
        field, value = ("kernel", layer.kernel) if not layer.bound else ("bound", layer.bound)
        raise InputError(field, value, legal)
    if plan.entries > config.offset_entries - _FREE_ENTRIES:
        legal = f"such that a pixel has at most {config.offset_entries - _FREE_ENTRIES} entries of offsets"
        raise InputError("offset_group", layer.offset_group, legal)
    if layer.dot:
        _check_dot(config, layer, plan)
    if plan.gather:
        _check_gather(config, layer, form, plan, in_memory)
    return plan


def sample_digits(config: ConvConfig, layer: ConvLayer) -> int:
    """Count the digits of base 256 of a sample that leaves; a pixel without interpolation has one.

    Digits are -128 ... 127, so n of them hold ``-128 * (256^n - 1) / 255`` and above.
    """
    if layer.offsets is Offsets.NONE:
        return 1
    scale = 4**config.fraction_bits * (255 if layer.masked else 1)
    low, high = (-128 - layer.zero) * scale, (127 - layer.zero) * scale
    count = 1
    while not -128 * (256**count - 1) // 255 <= low <= high <= 127 * (256**count - 1) // 255:
        count += 1
    if count > MAX_DIGITS:
        raise InputError("masked", True, f"false: samples would have {count} bytes, of {MAX_DIGITS}")
    return count


def _goes_by_strips(config: ConvConfig, layer: ConvLayer, pixel_words: int) -> bool:
    """Return whether a layer can be a strip, and is faster so: a strip walks all columns of the map."""
    dilation = layer.dilations[0]
    possible = (
        config.strip
        and layer.kind is LayerKind.DEPTHWISE
        and layer.offsets is Offsets.NONE
        and layer.kernel == (3, 3)
        and layer.dilations[1] == dilation
        and _split(dilation) <= _MOST_SPLIT
        and dilation * pixel_words <= config.strip_words
        and max(layer.pads[:2]) <= 2 * dilation
    )
    columns = layer.out_size[1]
    walked = (columns - 1) * layer.strides[1] + 2 * dilation + 1 - layer.pads[1]
    return possible and walked <= columns * _steps(config, layer)


def _steps(config: ConvConfig, layer: ConvLayer) -> int:
    """Count the cycles of a word that is sampled tap by tap."""
    return layer.taps if layer.kind is LayerKind.SAMPLES else -(-layer.taps // config.taps)


def _split(dilation: int) -> int:
    """Count the factors of 2: rows this far apart are an odd number of banks apart."""
    return (dilation & -dilation).bit_length() - 1


def _slots(config: ConvConfig, layer: ConvLayer, pixel_words: int, split: int, *, strip: bool) -> int:
    """Return the most rows that the line buffer holds, at most those of the map, rounded up."""
    step, banks = (4 << split, 4) if strip else (2, 2)
    row_words = _row_words(layer, pixel_words, strip=strip)
    held = config.bank_words // row_words * banks // step * step
    return min(held, -(-layer.rows // step) * step, _MOST_SLOTS // step * step)


def _row_words(layer: ConvLayer, pixel_words: int, *, strip: bool) -> int:
    return pixel_words * (layer.columns if strip else -(-layer.columns // 2))


def _rows(config: ConvConfig, layer: ConvLayer, pixel_words: int, *, strip: bool) -> BufferPlan | None:
    """Plan the window of rows; None if it does not fit into the line buffer."""
    split = _split(layer.dilations[0]) if strip else 0
    slots = _slots(config, layer, pixel_words, split, strip=strip)
    kernel = (layer.kernel[0] - 1) * layer.dilations[0] + 1
    reach = _reach(config, layer)
    gather = not _holds(layer, slots, kernel, reach)
    if gather:
        if not config.gather_words or layer.offsets is not Offsets.FREE:
            return None
        reach = max(0, (slots - layer.strides[0] - kernel) // 2)  # covers most offsets
        if not _holds(layer, slots, kernel, reach):
            return None
    steps = 1 if strip else _steps(config, layer)
    slices = pixel_words * config.generators
    if layer.offset_group > 1:
        slice_lanes = config.lanes // config.generators
        slices = -(-(layer.channels // layer.offset_group) // slice_lanes)
    entries = {Offsets.NONE: 0, Offsets.SQUARE: 1, Offsets.FREE: layer.offset_group * steps}
    return BufferPlan(
        strip=strip,
        gather=gather,
        words=pixel_words,
        slots=slots,
        row_words=_row_words(layer, pixel_words, strip=strip),
        split=split,
        steps=steps,
        first_need=min(layer.rows, kernel - layer.pads[0] + reach),
        first_free=max(-(layer.out_size[0] - 1) * layer.strides[0], -layer.pads[0] - reach),
        group_slices=slices,
        entries=entries[layer.offsets],
        entry_units=_entry_units(config, layer),
        digits=sample_digits(config, layer) if layer.kind is LayerKind.SAMPLES else 1,
        passes=_passes(layer),
    )


def _holds(layer: ConvLayer, slots: int, kernel: int, reach: int) -> bool:
    """Return whether ``slots`` rows hold a window of ``kernel`` rows with ``reach`` more above and below.

    A row of results frees rows when it begins, so the rows of the previous one are held while it waits.
    After the last row of results the rest of the map must fit.
    """
    steps = range(0, layer.out_size[0] * layer.strides[0], layer.strides[0])
    held = [max(0, step - layer.pads[0] - reach) for step in steps]
    needed = [min(layer.rows, step - layer.pads[0] + kernel + reach) for step in steps]
    return all(need - free <= slots for need, free in zip([*needed, layer.rows], [0, *held], strict=True))


def _passes(layer: ConvLayer) -> int:
    if not layer.dot:
        return 0
    return 1 if layer.offsets is Offsets.SQUARE else layer.taps


def _check_dot(config: ConvConfig, layer: ConvLayer, plan: BufferPlan) -> None:
    """Check that offsets computed on chip fit.

    They arrive with the map, and a row of results begins when the rows that it needs have arrived.
    """
    words = plan.words * plan.passes
    if words > config.dot_words:
        raise InputError("words of the offsets' weights", words, f"at most {config.dot_words}")
    rows = max(1, plan.first_need)
    ahead = rows * layer.columns * plan.entries
    if ahead > config.offset_entries - _FREE_ENTRIES:
        legal = f"such that {rows} rows have at most {config.offset_entries - _FREE_ENTRIES} entries"
        raise InputError("dot", True, legal)


def _check_gather(
    config: ConvConfig, layer: ConvLayer, form: MapForm, plan: BufferPlan, in_memory: bool
) -> None:
    """Check that a layer whose offsets reach beyond the line buffer can be gathered."""
    legal = "where offsets reach rows outside of the line buffer"
    if plan.steps * plan.words > config.gather_words:
        most = f"at most {config.gather_words}, {plan.steps} for each word of a pixel, {legal}"
        raise InputError("words of neighbours", plan.steps * plan.words, most)
    if layer.offset_group > 1:
        raise InputError("offset_group", layer.offset_group, f"1 {legal}")
    if form.parts > 1:
        raise InputError("parts", form.parts, f"1 {legal}")
    if not in_memory:
        raise InputError("layers", "pointwise first", f"depthwise first {legal}")
    # A deadlock: the map waits for offsets computed from it, these for their gathered samples, these for the
    # map.
    if layer.dot:
        raise InputError("dot", True, f"false {legal}")


def _entry_units(config: ConvConfig, layer: ConvLayer) -> int:
    if layer.offsets is not Offsets.FREE:
        return 0 if layer.offsets is Offsets.NONE else 1
    taps = 1 if layer.kind is LayerKind.SAMPLES else config.taps
    return taps * (3 if layer.masked else 2)


def _reach(config: ConvConfig, layer: ConvLayer) -> int:
    """Return the most rows by which an offset moves a tap up or down.

    A tap moved down by the most has no fraction, so the row below it is not needed.
    """
    if layer.offsets is Offsets.NONE:
        return 0
    most = 1 << OFFSET_BITS - 1 - config.fraction_bits if layer.bound is None else layer.bound
    return most * (layer.kernel[0] // 2 if layer.offsets is Offsets.SQUARE else 1)
