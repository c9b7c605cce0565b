"""The streams of a core without movers: a job's commands, words, weights and offsets, in the core's order."""

from typing import Any

import numpy as np
from amaranth.hdl import unsigned
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.core.bypass_cut import BypassCommand
from hw.conv.core.layouts import OffsetCommand, Offsets, TapCommand, offset_entry
from hw.conv.core.pointwise.commands import BlockCommand, DrainCommand, SweepCommand
from hw.conv.core.route import Turn
from hw.conv.driver.layout import map_words
from hw.conv.driver.plan import PlannedJob
from hw.conv.driver.program import ConvProgram, ConvStep
from hw.conv.movers import descriptor as d
from hw.errors import InputError

#: Items by the names of the core's inputs.
Streams = dict[str, list[Any]]
Fields = dict[str, int]

_TAP = (
    *("out_rows", "out_columns", "kernel_rows", "kernel_columns", "stride_rows", "stride_columns"),
    *("dilation_rows", "dilation_columns", "pad_rows", "pad_columns", "steps", "first_need", "first_free"),
    *("group_slices", "digits"),
)
_FILL = ("rows", "columns", "words", "slots", "row_words", "split")


def conv_shapes(config: ConvConfig, *, beat_bits: int) -> dict[str, Any]:
    """Return the shape of the payload of every input, by the names of `conv_streams`.

    ``beat_bits``: bits of a beat of weights.
    """
    shapes: dict[str, Any] = {
        "tap": TapCommand(config),
        "offset": OffsetCommand(config),
        "block": BlockCommand(config),
        "sweep": SweepCommand(config),
        "drain": DrainCommand(config),
        "bypass_block": BlockCommand(config),
        "bypass_cut": BypassCommand(config),
        "i": unsigned(config.word_bits),
        "bypass": unsigned(config.word_bits),
        "offsets": offset_entry(config),
        "tap_weights": unsigned(beat_bits),
        "tile_weights": unsigned(beat_bits),
    }
    return shapes | {f"{end}_turns_{n}": Turn() for end in ("source", "sink") for n in range(3)}


def conv_streams(program: ConvProgram) -> Streams:
    """Return the items of every input of `hw.conv.core.core.ConvCore` for the jobs of a program.

    Every map that is read must be one of ``inputs``: a result of an earlier job would have to come back from
    a memory that the core does not have.  No tokens are asked for.  Neighbours of a layer that gathers are
    not among the items, as the core asks for them one by one.

    Raises `InputError` for a job that reads a result of another.
    """
    items: Streams = {name: [] for name in conv_shapes(program.config, beat_bits=program.beat_bits)}
    for step, job in zip(program.steps, program.jobs, strict=True):
        fields = dict.fromkeys(d.fields(program.config), 0) | dict(job.fields)
        for name, more in _commands(fields, gathers=program.config.gather_words > 0).items():
            items[name] += more
        _data(program, step, job, fields, items)
    return items


def _commands(field: Fields, *, gathers: bool) -> Streams:
    """Return the commands of a job: as `hw.conv.movers.dispatch.Dispatch` issues them, without tokens."""

    def has(flag: int) -> bool:
        return bool(field["flags"] & flag)

    def copied(names: tuple[str, ...], prefix: str = "") -> Fields:
        return {name: field[prefix + name] for name in names}

    found: Streams = {}
    if has(d.DEPTHWISE):
        kind = Offsets.FREE if has(d.FREE) else Offsets.SQUARE if has(d.SQUARE) else Offsets.NONE
        fill = copied(_FILL) | {"strip": int(has(d.STRIP)), "asked": 0}
        flags = {"masked": d.MASKED, "gather": d.GATHER, "samples": d.SAMPLES, "dot": d.DOT}
        tap = copied(_TAP) | copied(("entries", "passes"), "offset_")
        tap |= {name: int(has(flag)) for name, flag in flags.items()} | {"offsets": int(kind)}
        settings = copied(("zero", "low", "high"), "tap_") | {"raw": int(has(d.TAP_RAW))}
        found["tap"] = [tap | {"fill": fill, "settings": settings}]
        if kind is not Offsets.NONE:
            offset = copied(("pixels", "entries", "low", "high"), "offset_") | {"dot": int(has(d.DOT))}
            found["offset"] = [offset | ({"tap": found["tap"][0]} if gathers else {})]
    if has(d.POINTWISE):
        sizes = copied(("block", "last_block", "blocks")) | {"asked": 0}
        block = sizes | {"words": field["block_words"]}
        settings = {"zero": 0, **copied(("low", "high"), "point_"), "raw": int(has(d.POINT_RAW))}
        drain = copied(("rows", "last_rows", "columns", "words", "parts"), "drain_")
        flags = {"split": d.SPLIT, "double": d.DOUBLE, "shuffle": d.BYPASS}
        found |= {
            "block": [block],
            "sweep": [{"blocks": block, "out_words": field["out_words"], "settings": settings}],
            "drain": [
                drain
                | copied(("blocks", "part_words"))
                | {name: int(has(flag)) for name, flag in flags.items()}
            ],
        }
        if has(d.BYPASS):
            cut = {"pixels": field["bypass_total_pixels"], **copied(("parts", "channels"), "bypass_")}
            found |= {
                "bypass_block": [sizes | {"words": field["bypass_words"]}],
                "bypass_cut": [cut],
            }
    return found | _turns(field, depthwise=has(d.DEPTHWISE), pointwise=has(d.POINTWISE))


def _turns(field: Fields, *, depthwise: bool, pointwise: bool) -> Streams:
    """Return the turns of the router's ends: memory, depthwise, pointwise; into both, and out."""
    into, middle, out = (field[f"{name}_total_words"] for name in ("in", "middle", "out"))
    reverse = bool(field["flags"] & d.POINTWISE_FIRST)
    tap_first = depthwise and not (pointwise and reverse)
    last_point = pointwise and not (depthwise and reverse)
    found = {
        "source_turns_0": [{"other": int(not tap_first), "words": into}],
        "sink_turns_2": [{"other": int(last_point), "words": out}],
    }
    if depthwise:
        leads = pointwise and not reverse
        follows = pointwise and reverse
        found["source_turns_1"] = [{"other": int(not leads), "words": middle if leads else out}]
        found["sink_turns_0"] = [{"other": int(follows), "words": middle if follows else into}]
    if pointwise:
        leads = depthwise and reverse
        follows = depthwise and not reverse
        found["source_turns_2"] = [{"other": int(not leads), "words": middle if leads else out}]
        found["sink_turns_1"] = [{"other": int(follows), "words": middle if follows else into}]
    return found


def _data(program: ConvProgram, step: ConvStep, job: PlannedJob, field: Fields, items: Streams) -> None:
    """Add the words, offsets and weights of a job."""
    config = program.config
    for name, source in (("i", step.source), ("bypass", step.bypass)):
        if source is None:
            continue
        if source.name not in program.inputs or source.part is not None:
            raise InputError("map of a job", source.name, "one of the program's inputs, and whole")
        form = program.maps[source.name].form
        words = map_words(config, form, program.inputs[source.name])
        items[name] += _numbers(words.reshape(-1, config.lanes))
    entries = field["offset_total_entries"] if not field["flags"] & d.DOT else 0
    if entries:
        first = field["offsets"]
        raw = program.offsets[first : first + field["offset_bytes"]]
        items["offsets"] += _entries(config, raw.view("<i2").reshape(entries, -1), field["flags"])
    beat = program.beat_bits // 8
    for name, place, size, times in (
        ("tap_weights", "weights", "weight_bytes", 1),
        ("tile_weights", "tiles", "tile_bytes", field["tile_repeats"]),
    ):
        raw = program.weights[field[place] : field[place] + field[size]]
        items[name] += _numbers(raw.reshape(-1, beat)) * times


def _entries(config: ConvConfig, units: NDArray[np.int16], flags: int) -> list[list[dict[str, int]]]:
    """Return entries of T offsets; a field that memory does not have is 0."""
    fields = 1 if flags & d.SQUARE else 3 if flags & d.MASKED else 2
    found = []
    for entry in units.tolist():
        taps = [entry[n : n + fields] for n in range(0, len(entry), fields)]
        taps += [[0]] * (config.taps - len(taps))
        padded = [[*tap, 0, 0][:3] for tap in taps]
        found.append([{"dy": dy, "dx": dx, "mask": mask} for dy, dx, mask in padded])
    return found


def _numbers(rows: NDArray[np.integer[Any]]) -> list[int]:
    """Return rows of bytes as numbers, the first byte lowest."""
    return [int.from_bytes(np.ascontiguousarray(row).tobytes(), "little") for row in rows]
