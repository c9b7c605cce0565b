"""Latency of an operation's path: the sum of the latencies of its parts."""

from hw.lib.fifo import Fifo
from hw.oram.config import OramConfig
from hw.oram.core.border import BORDER
from hw.oram.core.crypto.front import Front
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.crypto.power_table import PowerTable
from hw.oram.core.pages.buffer import PageBuffer
from hw.oram.core.pages.opener import PageOpener, page_shape
from hw.oram.core.pages.sealer import PageSealer
from hw.oram.core.position.lookahead import Lookahead
from hw.oram.core.position.position import Position
from hw.oram.core.position.sweep import Sweep
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.keys import DERIVATIONS
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.core.stage.schedule import StageSchedule
from hw.oram.core.touch.issue import Issue
from hw.oram.core.touch.times import TouchTimes
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.sizing.idle import idle_sizes

#: Cycles from a word in a port's queue to the user of a line: a queue in block RAM takes two more.
_COLLECT = Fifo.DEEP_LATENCY - Fifo.LATENCY
#: Cycles that a line waits for those of other ports.
_ROTATION = 2
#: Register cycles between the steps of the key derivation.
_KEYS_EXTRA = 10
#: Minimum cycles without a burst at any port after which none can follow: more than any part needs, except
#: for sealing long pages.
_QUIET_CYCLES = 128
#: Cycles of the last writes outside of HBM and of its deadlines, with a margin.
_END_EXTRA = 96
#: Cycles of a bucket's write outside of HBM, with a margin.
_BUCKET_EXTRA = 24
#: Cycles of a page from its sealer to the bus, with a margin.
_QUIET_EXTRA = 32


class PathTiming:
    """Times of `docs/oram.md`, section "Time"."""

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        self._schedule = StageSchedule(config)
        self.idle = idle_sizes(config)  # of operations that are alone

    @property
    def keys(self) -> int:
        """From the start of an initializing launch to all keys and powers: `hw.oram.core.session.keys`."""
        powers = PowerTable.latency(page_shape(self._config))
        further = KeySchedule.LATENCY * (len(DERIVATIONS) - 1)  # while the page's key is expanded
        return KeySchedule.LATENCY * 2 + max(further, powers) + _KEYS_EXTRA

    @property
    def command(self) -> int:
        """From the acceptance of a command to its query of the position map, if no other is under way."""
        opened = 1 + CommandOpener.latency(self._config)
        return opened + Fifo.LATENCY + Front.latency(self._config.interval) + Fifo.DEEP_LATENCY

    @property
    def position(self) -> int:
        """From the acceptance of a command to its first touch's issue, at least."""
        config = self._config
        paced = config.interval - 1 + config.interval + _ROTATION  # by the front, by the position map
        return self._position_path + paced + config.position.read_cycles

    @property
    def touch(self) -> int:
        """From the issue of a touch to its admission, at least."""
        return self._touch_path + _ROTATION + self._config.record_sizes.touch_cycles + Keystream.LATENCY

    @property
    def idle_position(self) -> int:
        """As `position`, of an operation that is alone; a stated deadline holds for all."""
        if self._config.position_cycles:
            return self.position
        return min(self._position_path + self.idle.position_cycles, self.position)

    @property
    def idle_touch(self) -> int:
        """As `touch`, of an operation that is alone; a stated deadline holds for all.

        A page's keystream needs its record's head alone. The queue of versions takes one of the cycles of
        `_COLLECT`, which a head does not need.
        """
        if self._config.touch_cycles:
            return self.touch
        last = max(self.idle.touch_cycles, self.idle.head_cycles + Keystream.LATENCY)
        return min(self._touch_path + last, self.touch)

    @property
    def touches(self) -> TouchTimes:
        """Return the times of the controls."""
        return TouchTimes(
            position_cycles=self.position,
            touch_cycles=self.touch,
            idle_position_cycles=self.idle_position,
            idle_touch_cycles=self.idle_touch,
            rest_cycles=self.rest,
            forward_cycles=self.forward,
        )

    @property
    def rest(self) -> int:
        """From the last admission to the acceptance of an operation that is alone, at least.

        All writes of earlier operations are answered, as at the end of a launch. The last lookup is earlier
        than its operation's admission.
        """
        config = self._config
        records = self.response_sealed + self.quiet + config.record_sizes.settle_cycles + _END_EXTRA
        return max(config.position.write_cycles + _BUCKET_EXTRA, records)

    @property
    def _position_path(self) -> int:
        """Cycles outside of HBM from the acceptance of a command to its first touch's issue."""
        asked = self.command + Lookahead.LATENCY + LineReader.ADDRESS_LATENCY
        arrival = LineReader.DATA_LATENCY + _COLLECT + Position.LATENCY
        return asked + arrival + Fifo.LATENCY + Issue.LOOKUP + 1

    @property
    def _touch_path(self) -> int:
        """Cycles outside of HBM from the issue of a touch to its admission."""
        asked = 1 + Fifo.LATENCY + LineReader.ADDRESS_LATENCY
        return asked + LineReader.DATA_LATENCY + _COLLECT + 2

    @property
    def stage(self) -> int:
        """From a touch's admission to the stage: its pulse, and its page's first opened beat."""
        return 1 + PageOpener.latency(self._config)

    @property
    def forward(self) -> int:
        """From a touch's admission to the next one of its page, at least."""
        return self._schedule.page + PageBuffer.LATENCY

    @property
    def page_sealed(self) -> int:
        """From a touch's admission to the last beat of its sealed page, on the die of the ports."""
        begins = max(self._schedule.page, self._schedule.seal + Keystream.LATENCY)
        return self.stage + begins + 2 * BORDER + PageSealer.latency(self._config)

    @property
    def response_sealed(self) -> int:
        """From the admission of an operation's last touch to the last beat of its sealed response, on the die
        of the ports.
        """
        sealed = 2 * BORDER + ResponseSealer.latency(self._config)
        return self.stage + self._schedule.response + sealed

    @property
    def quiet(self) -> int:
        """Cycles without a burst at the host's ports until none can follow; a page may be sealed long after
        its response was written.
        """
        return max(_QUIET_CYCLES, self.page_sealed - self.response_sealed + _QUIET_EXTRA)

    @property
    def end(self) -> int:
        """Cycles for all writes to HBM once the host's ports are quiet: those of the log, and of records."""
        config = self._config
        return (
            max(Sweep.cycles(config) + config.position.write_cycles, config.record_sizes.settle_cycles)
            + _END_EXTRA
        )
