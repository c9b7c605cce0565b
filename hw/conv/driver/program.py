"""Jobs with their tensors: the contents of a launch's memory, and the reading of results from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.layout import gathered, offset_entries, spread
from hw.conv.driver.maps import MapPlace
from hw.conv.driver.plan import JobPlaces, PlannedJob
from hw.conv.driver.route import PLAIN, Rearrangement, Route, plan_route
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors, tap_stream, tile_stream
from hw.conv.driver.workload import ConvJob, ConvWorkload, JobMaps, MapName
from hw.conv.movers.descriptor import pack_descriptor
from hw.errors import InputError
from hw.launch import Bytes, Int8

#: Alignment of maps, weights and offsets, in bytes.
_ALIGNED = 64
_EMPTY = np.zeros(0, np.uint8)


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTensors:
    """A layer and its tensors."""

    layer: ConvLayer  #: Sizes and attributes.
    w: Int8  #: int8 ``[Cout, C / group, kH, kW]``
    parameters: ChannelParameters  #: Of its output channels.
    #: int16 ``[2 * offset_group * K, oH, oW]``, or ``[oH, oW]`` if square
    offset: NDArray[np.int16] | None = None
    mask: NDArray[np.uint8] | None = None  #: uint8 ``[offset_group * K, oH, oW]``
    dot: DotTensors | None = None  #: Computes the offsets, if they are not given.


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvStep:
    """A job: its layers with their tensors, and the maps it reads and writes."""

    name: str
    layers: tuple[LayerTensors, ...]
    source: MapName
    result: str
    bypass: MapName | None = None
    rearrangement: Rearrangement = PLAIN
    most_pixels: int | None = None
    after: bool = False

    @cached_property
    def job(self) -> ConvJob:
        """The job without its tensors."""
        return ConvJob(
            layers=tuple(tensors.layer for tensors in self.layers),
            rearrangement=self.rearrangement,
            source_half=self.source.part is not None,
            bypass_half=self.bypass is not None and self.bypass.part is not None,
            most_pixels=self.most_pixels,
            after=self.after,
        )

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the map it writes."""
        rows, columns = self.layers[-1].layer.out_size
        return (2 * rows, 2 * columns) if self.rearrangement.double else (rows, columns)


@dataclass(frozen=True, kw_only=True)
class _Map:
    """A map in memory: form, size, whether rows are split, and its address at each port."""

    form: MapForm
    size: tuple[int, int]
    split: bool
    addresses: tuple[int, ...]

    def lengths(self, config: ConvConfig) -> list[int]:
        pixels = self.size[0] * self.size[1] * self.form.parts
        return [pixels * units for units in self.form.units(config)]

    def place(self, config: ConvConfig, part: int | None) -> MapPlace:
        if part is None:
            return MapPlace(form=self.form, addresses=self.addresses)
        offsets = [part * self.size[1] * units for units in self.form.units(config)]
        half = MapForm(channels=self.form.channels // 2)
        return MapPlace(
            form=half,
            addresses=tuple(a + o for a, o in zip(self.addresses, offsets, strict=True)),
            half=True,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvProgram:
    """The jobs of a launch, and their tensors."""

    config: ConvConfig
    #: int8 ``[C, H, W]`` by name: maps written by the host, in the form that the first reader needs.
    inputs: Mapping[str, Int8]
    steps: tuple[ConvStep, ...]  #: Jobs in order.
    #: Bits of a beat of the ports: those of the board in a launch, any otherwise.
    beat_bits: int = 256

    def at(self, beat_bits: int) -> ConvProgram:
        """Return the same program for ports of ``beat_bits``."""
        return replace(self, beat_bits=beat_bits)

    @cached_property
    def maps(self) -> dict[str, _Map]:
        """Every map: inputs, then results, at consecutive addresses."""
        ends = [0] * self.config.ports
        maps: dict[str, _Map] = {}

        def add(name: str, form: MapForm, size: tuple[int, int], *, split: bool = False) -> None:
            if name in maps:
                raise InputError("name of a map", name, "used once")
            found = _Map(form=form, size=size, split=split, addresses=tuple(ends))
            for port, length in enumerate(found.lengths(self.config)):
                ends[port] += -(-length // _ALIGNED) * _ALIGNED
            maps[name] = found

        for name, tensor in self.inputs.items():
            form = next(
                (step.job.source_form for step in self.steps if step.source.name == name),
                MapForm(channels=len(tensor)),
            )
            add(name, form, (tensor.shape[1], tensor.shape[2]))
        for step in self.steps:
            add(step.result, step.job.result_form, step.size, split=step.rearrangement.split)
        return maps

    @cached_property
    def _compiled(self) -> tuple[list[PlannedJob], Bytes]:
        """Plan every step; returns jobs and weights."""
        weights = _Arena()
        jobs = []
        for step, offsets in zip(self.steps, self._offset_arena[0], strict=True):
            streams = self._streams(step, self.route(step))
            places = replace(
                self._places(step),
                weights=weights.add(streams.get("weights", _EMPTY)),
                tiles=weights.add(streams.get("tiles", _EMPTY)),
                offsets=offsets,
            )
            jobs.append(step.job.plan(self.config, beat_bits=self.beat_bits, places=places))
        return jobs, weights.content

    @cached_property
    def _offset_arena(self) -> tuple[list[int], Bytes]:
        """Return the address of each step's offsets, and all of them."""
        arena = _Arena()
        return [arena.add(self._offsets(step)) for step in self.steps], arena.content

    def _places(self, step: ConvStep) -> JobPlaces:
        """Return the places of a step's maps."""
        return JobPlaces(
            source=self.maps[step.source.name].place(self.config, step.source.part),
            result=self.maps[step.result].place(self.config, None),
            bypass=None
            if step.bypass is None
            else self.maps[step.bypass.name].place(self.config, step.bypass.part),
        )

    def route(self, step: ConvStep) -> Route:
        """Return the route of a step, which is the same for ports of any width."""
        job, places = step.job, self._places(step)
        return plan_route(self.config, job.layers, places.source.form, places.result.form, job.rearrangement)

    def _streams(self, step: ConvStep, route: Route) -> dict[str, Bytes]:
        """Return the weights of a job, by the fields of `JobPlaces`."""
        streams = {}
        for tensors in step.layers:
            if tensors.layer.kind is LayerKind.DEPTHWISE or tensors.layer.dot:
                assert route.tap is not None
                streams["weights"] = tap_stream(
                    self.config,
                    route.tap,
                    route.sampled,
                    tensors.w,
                    tensors.parameters,
                    beat_bits=self.beat_bits,
                    dot=tensors.dot,
                )
            if tensors.layer.kind is not LayerKind.DEPTHWISE:
                assert route.point is not None
                streams["tiles"] = tile_stream(
                    self.config, route.point, tensors.w, tensors.parameters, beat_bits=self.beat_bits
                )
        return streams

    def _offsets(self, step: ConvStep) -> Bytes:
        for tensors in step.layers:
            if tensors.layer.offsets is not Offsets.NONE and tensors.offset is not None:
                return offset_entries(self.config, tensors.layer, tensors.offset, tensors.mask)
        return _EMPTY

    @property
    def jobs(self) -> list[PlannedJob]:
        """The planned steps."""
        return self._compiled[0]

    @property
    def descriptors(self) -> Bytes:
        """The descriptors in memory."""
        raw = b"".join(pack_descriptor(self.config, job.fields) for job in self._compiled[0])
        return np.frombuffer(raw, np.uint8)

    @property
    def weights(self) -> Bytes:
        """Weights of all jobs."""
        return self._compiled[1]

    @property
    def offsets(self) -> Bytes:
        """Offsets of all jobs."""
        return self._offset_arena[1]

    @property
    def workload(self) -> ConvWorkload:
        """The launch without its tensors."""
        maps = tuple(
            JobMaps(source=step.source, result=step.result, bypass=step.bypass) for step in self.steps
        )
        names = [name for each in maps for name in each.names]
        shared = len(set(names)) < len(names)
        return ConvWorkload(jobs=tuple(step.job for step in self.steps), maps=maps if shared else ())

    def arenas(self) -> list[Bytes]:
        """Return each port's memory of maps before the launch: inputs, and a pattern elsewhere."""
        last = [0] * self.config.ports
        for found in self.maps.values():
            for port, length in enumerate(found.lengths(self.config)):
                last[port] = max(last[port], found.addresses[port] + -(-length // _ALIGNED) * _ALIGNED)
        arenas = [np.full(max(size, _ALIGNED), 0x5A, np.uint8) for size in last]
        for name, tensor in self.inputs.items():
            found = self.maps[name]
            for port, content in enumerate(spread(self.config, found.form, tensor)):
                first = found.addresses[port]
                arenas[port][first : first + content.size] = content.view(np.uint8)
        return arenas

    def unwritten(self, arenas: list[Bytes]) -> Bytes:
        """Return the memory that no step writes, port by port."""
        parts = []
        for port, content in enumerate(arenas):
            mask = np.ones(content.size, np.bool_)
            for found in (self.maps[step.result] for step in self.steps):
                first = found.addresses[port]
                mask[first : first + found.lengths(self.config)[port]] = False
            parts.append(content[mask])
        return np.concatenate(parts)

    def read(self, name: str, arenas: list[Bytes]) -> Int8:
        """Return a map ``[C, H, W]`` from the ports' memory after the launch."""
        found = self.maps[name]
        slices = [
            arenas[port][first : first + length].view(np.int8)
            for port, (first, length) in enumerate(
                zip(found.addresses, found.lengths(self.config), strict=True)
            )
        ]
        return gathered(self.config, found.form, slices, found.size, split=found.split)


def in_order(steps: Sequence[ConvStep]) -> list[ConvStep]:
    """Mark each job that must wait for earlier ones: it reads a result of one of them.

    Jobs that are marked already stay so.
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


class _Arena:
    """Contents at consecutive addresses."""

    def __init__(self) -> None:
        self._parts: list[Bytes] = []
        self._end = 0

    def add(self, content: Bytes) -> int:
        """Append; returns the address."""
        place = self._end
        padded = -(-content.size // _ALIGNED) * _ALIGNED
        self._parts.append(np.pad(content, (0, padded - content.size)))
        self._end += padded
        return place

    @property
    def content(self) -> Bytes:
        """All contents, at least `_ALIGNED` bytes: no buffer is empty."""
        parts = self._parts if self._end else [np.zeros(_ALIGNED, np.uint8)]
        return np.concatenate(parts)
