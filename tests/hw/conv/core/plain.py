"""Small shapes, and commands of layers as plain values."""

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets


def small(**changes):
    sizes = {
        "lanes": 16, "bank_words": 256, "memory": "block", "inputs": 8, "outputs": 8, "block_pixels": 16,
        "block_words": 64, "bypass_words": 64, "ports": 1, "offset_entries": 64, "tap_words": 64,
        "gather_words": 0,
    }  # fmt: skip
    return ConvConfig(**(sizes | changes))


def row_slots(layer):
    """Return the fewest rows of the buffer that the layer can do with, and the rows that it needs."""
    reach = (layer.kernel[0] - 1) * layer.dilation[0]
    if layer.offsets == Offsets.NONE:
        above, below = 0, 0
    elif layer.offsets == Offsets.FREE:
        above, below = layer.reach, layer.reach
    else:
        above = below = layer.bound * (layer.kernel[0] // 2)
    first_free = -layer.pads[0] - above
    first_need = reach - layer.pads[0] + below + 1 + (1 if layer.config.fraction_bits and below else 0)
    group = 4 << layer.split if layer.strip else 2
    slots = first_need - min(first_free, 0) + layer.stride[0]
    if layer.gather:
        # Rows below the last window must fit, too.
        last_free = min(first_free, 0) + (layer.out[0] - 1) * layer.stride[0]
        slots = max(slots, layer.rows - max(0, last_free))
    return -(-slots // group) * group, first_need, min(first_free, 0)


def tap_command(layer):
    slots, first_need, first_free = row_slots(layer)
    words = layer.words
    return {
        "fill": {
            "rows": layer.rows,
            "columns": layer.columns,
            "words": words,
            "slots": slots,
            "row_words": (layer.columns if layer.strip else -(-layer.columns // 2)) * words,
            "strip": layer.strip,
            "split": layer.split,
            "asked": 0,
        },
        "out_rows": layer.out[0],
        "out_columns": layer.out[1],
        "kernel_rows": layer.kernel[0],
        "kernel_columns": layer.kernel[1],
        "stride_rows": layer.stride[0],
        "stride_columns": layer.stride[1],
        "dilation_rows": layer.dilation[0],
        "dilation_columns": layer.dilation[1],
        "pad_rows": layer.pads[0],
        "pad_columns": layer.pads[1],
        "steps": layer.steps,
        "first_need": first_need,
        "first_free": first_free,
        "offsets": int(layer.offsets),
        "masked": layer.masked,
        "gather": layer.gather,
        "entries": 1 if layer.offsets == Offsets.SQUARE else layer.groups * layer.steps,
        "group_slices": layer.words * layer.config.generators // layer.groups,
        "dot": getattr(layer, "dot", False),
        "passes": layer.passes if getattr(layer, "dot", False) else 0,
        "samples": layer.samples,
        "digits": layer.digits,
        "settings": {"zero": layer.zero, "low": -128, "high": 127, "raw": 0},
    }


def offset_command(layer):
    command = {
        "pixels": layer.out[0] * layer.out[1],
        "entries": tap_command(layer)["entries"],
        "low": -layer.limit,
        "high": layer.limit,
        "dot": getattr(layer, "dot", False),
    }
    return command | ({"tap": tap_command(layer)} if layer.config.gather_words else {})


def packets(sections, beat_bits):
    """Write packets of records, ``(kind, ends, records)``, as the beats of the stream of weights."""
    per_beat = beat_bits // 128
    beats = []
    for kind, ends, records in sections:
        beats.append(int(kind) | ends << 3 | len(records) << 8)
        for first in range(0, len(records), per_beat):
            group = records[first : first + per_beat]
            beats.append(sum(record << 128 * n for n, record in enumerate(group)))
    return beats


def scaled(total, parameters, low=-128, high=127):
    """Scale a sum by the formula of the specification."""
    half = (1 << parameters["shift"]) >> 1
    value = ((total * parameters["multiplier"] + half) >> parameters["shift"]) + parameters["post"]
    return max(low, min(high, value))
