"""The contract of an engine: a configuration, gates for it, its arguments, its needs of a board, its model.

An engine is three separable layers, each usable without the next: the **core** (streams and commands in,
streams out), the **movers** (descriptors to DMA to streams) and the **body** that the kernel shell wraps
(arguments, start and done, memory ports).  A new engine is a new folder in ``hw``, one of the same name in
``sim/engines`` and one line in `hw.registry`; nothing else is edited (``docs/add-an-engine.md``).
"""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from amaranth.lib import wiring

from hw.board import Board
from hw.board.regions import Regions, undivided
from hw.board.resources import Resources
from hw.lib.arguments import ArgumentTable
from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.place import Placer
from hw.prediction import Prediction

Config = TypeVar("Config")
Workload = TypeVar("Workload")


class Engine(abc.ABC, Generic[Config, Workload]):
    """What the generator, the simulator and the reports need to know of an engine."""

    #: Name on the command line; also the folder in ``hw`` and the module in ``sim/engines``.
    name: ClassVar[str]
    summary: ClassVar[str]  #: One line for listings.
    #: The frozen dataclass of the configuration; its fields are the YAML keys.
    config_type: ClassVar[type[Any]]
    #: The frozen dataclass of what is asked of the engine in one launch: shapes, modes and formats as plain
    #: values, checked by themselves, without tensors and without a configuration.
    workload_type: ClassVar[type[Any]]
    #: Folder of templates of further files of the package: ``NAME.j2`` becomes the file ``NAME``.
    templates: ClassVar[Path | None] = None
    #: Bursts of reads and of writes that an interconnect must take at a time to keep a memory port busy; with
    #: fewer the engine waits.  Those of the DMAs of `hw.lib`, unless an engine has others.
    bursts_under_way: ClassVar[tuple[int, int]] = (
        ReadDMA.FIFO_BEATS // MAX_BURST_BEATS,
        WriteDMA.OUTSTANDING,
    )
    #: What the names of its placed cells begin with that only compute: whatever their outputs are, no
    #: handshake and no address of a transfer changes.  A control-only simulation leaves them out; of an
    #: engine without any there is none.
    data_cells: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def default_config(self, board: Board) -> Config:
        """Return the configuration used when the user gives none: one that fits ``board``."""

    @abc.abstractmethod
    def arguments(self, config: Config, board: Board) -> ArgumentTable:
        """Return the table of kernel arguments and counters."""

    @abc.abstractmethod
    def body(self, config: Config, board: Board, placer: Placer) -> wiring.Component:
        """Make the gates: a component with the signature `hw.lib.kernel.BodySignature` of `arguments`."""

    @abc.abstractmethod
    def resources(self, config: Config, board: Board) -> Resources:
        """Estimate what the kernel takes, on the safe side; checked against the board before any work."""

    @abc.abstractmethod
    def placement(self, config: Config, board: Board) -> dict[str, int]:
        """Return the memory channel each memory port is connected to, by port name."""

    def regions(self, config: Config, board: Board) -> Regions:
        """Say which of the kernel's placed parts lie on which die; by default all beside the memory's ports.

        A pure function, which the gates follow: what goes from one region to another does so from register
        to register.
        """
        return undivided(board)

    @abc.abstractmethod
    def predict(self, workload: Workload, config: Config, board: Board) -> Prediction:
        """Predict cycles and bytes of a launch with the analytic model: no tensors, no simulation.

        The one way to ask how long something would take: reports, comparisons, planning and exploration do.
        It answers within a tenth of a second for launches of ordinary size.

        Raises
        ------
        InputError
            When the configuration cannot do the workload; the first field that is wrong.
        """
