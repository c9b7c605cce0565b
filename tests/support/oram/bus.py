"""A launch with its bus recorded, and that bus beside the computed trace."""

from dataclasses import dataclass, field
from itertools import repeat

from hw.board import load_board
from hw.oram.driver.buffers import COMMANDS, PAGES, RESPONSES
from hw.registry import find_engine
from sim.build.design import kernel_design
from sim.engines.oram.expected import expected_accesses, recorded_accesses
from sim.golden.oram.trace import BusLaunch
from sim.memory.trace import read_trace
from sim.run.launch import simulate
from sim.run.layout import place_buffers

BOARD = load_board("u55c")


def simulated(config, launch, directory, *, board=BOARD, **options):
    """Simulate a launch; return its result, and the trace at the host's ports."""
    engine, path = find_engine("oram"), directory / "bus.trace"
    done = simulate(
        kernel_design(engine, config, board),
        launch,
        directory=directory / "run",
        expected_cycles=1_000_000,
        traces={board.host.name: path},
        **options,
    )
    return done, read_trace(path)


@dataclass
class Bus:
    """Buffers of a launch, and the recording at the host's ports."""

    config: object
    launch: object  #: Made by the adapter.
    trace: object
    board: object = BOARD
    addresses: dict = field(init=False)
    ports: list = field(init=False)

    def __post_init__(self):
        engine = find_engine("oram")
        table = engine.arguments(self.config, self.board)
        placed = place_buffers(self.launch, table, engine.placement(self.config, self.board), self.board)
        self.addresses = {buffer.argument: buffer.address for buffer in placed}
        self.ports = [port for port in table.ports if port.startswith("host")]

    def follows(self, job, *, first=0, until=None, ring=0, found=None, empty_pages=0, endless=False):
        """Compare one call, of operations ``first`` to ``until``, whose rings begin at an offset of
        ``ring`` bytes.
        """
        call = BusLaunch(
            pages=self.addresses[PAGES],
            commands=self.addresses[COMMANDS] + ring,
            responses=self.addresses[RESPONSES] + ring,
            slots=self.launch.scalars["ring_slots"],
            poll=self.launch.scalars["poll_cycles"],
            first=first,
            endless=endless,
        )
        touched = [[page for page, _ in outcome.touches] for outcome in job.played.outcomes[first:until]]
        expected = expected_accesses(
            self.config,
            self.trace,
            self.ports,
            call,
            touched,
            empty_pages=empty_pages,
            found=repeat(True) if found is None else found,
        )
        got = recorded_accesses(self.trace, self.ports)
        assert len(got) == len(expected)
        for at, pair in enumerate(zip(got, expected, strict=True)):
            assert pair[0] == pair[1], f"burst {at}"
