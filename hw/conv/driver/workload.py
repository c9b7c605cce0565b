"""The jobs of a convolution launch: layers and their order, no tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hw.conv.config import ConvConfig
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.maps import MapPlace
from hw.conv.driver.plan import JobPlaces, PlannedJob, plan_job
from hw.conv.driver.route import PLAIN, Rearrangement, plan_route
from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ConvJob:
    """A job: one layer, or a depthwise and a pointwise one without memory in between."""

    layers: tuple[ConvLayer, ...]  #: One or two.
    rearrangement: Rearrangement = PLAIN  #: Of the results of a pointwise layer.
    source_half: bool = False  #: The map that is read is one half of a map whose rows are split.
    bypass_half: bool = False  #: As ``source_half``, of the bypass.
    most_pixels: int | None = None  #: Most pixels of a block of the pointwise array; None: as many as fit.
    after: bool = False  #: The map is read after all results of earlier jobs are in memory.

    @property
    def source_form(self) -> MapForm:
        """Form of the map that is read."""
        return MapForm(channels=self.layers[0].channels, groups=self._groups(self.layers[0]))

    @property
    def result_form(self) -> MapForm:
        """Form of the map that is written."""
        last = self.layers[-1]
        if last.kind is LayerKind.DEPTHWISE:
            return MapForm(channels=last.outputs, groups=self._groups(last))
        channels = last.outputs * (2 if self.rearrangement.shuffle else 1)
        return MapForm(channels=channels, parts=2 if self.rearrangement.split else 1)

    def _groups(self, layer: ConvLayer) -> int:
        sampled = next((layer for layer in self.layers if layer.kind is not LayerKind.POINTWISE), None)
        return layer.offset_group if layer is sampled else 1

    def plan(self, config: ConvConfig, *, beat_bits: int, places: JobPlaces | None = None) -> PlannedJob:
        """Plan the job; without ``places`` every tensor lies at 0.

        Addresses do not change a plan, so equal jobs are planned once, wherever their tensors lie.
        """
        if places is not None:
            return plan_at_zero(config, self, beat_bits, places.at_zero).at(places)
        nowhere = (0,) * config.ports
        bypass = MapForm(channels=self.layers[-1].outputs)
        at_zero = JobPlaces(
            source=MapPlace(form=self.source_form, addresses=nowhere, half=self.source_half),
            result=MapPlace(form=self.result_form, addresses=nowhere),
            bypass=MapPlace(form=bypass, addresses=nowhere, half=self.bypass_half)
            if self.rearrangement.shuffle
            else None,
        )
        return plan_at_zero(config, self, beat_bits, at_zero)


@lru_cache(maxsize=256)
def plan_at_zero(config: ConvConfig, job: ConvJob, beat_bits: int, places: JobPlaces) -> PlannedJob:
    """Plan a job whose tensors lie at 0; equal jobs share one plan."""
    return plan_job(
        config,
        job.layers,
        places,
        beat_bits=beat_bits,
        rearrangement=job.rearrangement,
        most_pixels=job.most_pixels,
        after=job.after,
    )


def busy_cycles(config: ConvConfig, layers: Sequence[ConvLayer]) -> int:
    """Return the cycles of the slower unit in a job of ``layers``, stalls not counted."""
    job = ConvJob(layers=tuple(layers))
    route = plan_route(config, job.layers, job.source_form, job.result_form, job.rearrangement)
    return max(side.cycles for side in (route.tap, route.point) if side is not None)


@dataclass(frozen=True, kw_only=True)
class MapName:
    """A map by name; ``part`` selects a half of one whose rows are split, None the whole."""

    name: str
    part: int | None = None


@dataclass(frozen=True, kw_only=True)
class JobMaps:
    """The maps that a job reads and writes."""

    source: MapName
    result: str
    bypass: MapName | None = None

    @property
    def names(self) -> list[str]:
        """The names of its maps."""
        return [self.source.name, self.result, *([] if self.bypass is None else [self.bypass.name])]


@dataclass(frozen=True, kw_only=True)
class ConvWorkload:
    """One launch of the convolution engine, of any configuration: jobs in order, at least one."""

    jobs: tuple[ConvJob, ...]
    maps: tuple[JobMaps, ...] = ()  #: Of each job; (): every job has maps of its own.

    def __post_init__(self) -> None:
        if not self.jobs:
            raise InputError("jobs", 0, "at least 1")
        if self.maps and len(self.maps) != len(self.jobs):
            raise InputError("maps", len(self.maps), f"{len(self.jobs)}, one entry for each job")
