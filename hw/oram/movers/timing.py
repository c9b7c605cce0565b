"""Cycles that an operation's way takes, from the latencies of the parts it passes."""

from __future__ import annotations

from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.config import OramConfig
from hw.oram.core.crypto.front import Front
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.crypto.power_table import PowerTable
from hw.oram.core.pages.opener import PageOpener, page_shape
from hw.oram.core.pages.sealer import PageSealer
from hw.oram.core.position.position import Position
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.core.stage.schedule import Schedule
from hw.oram.core.touch.issue import Issue
from hw.oram.movers.hbm.line_reader import LineReader

#: From a word in a port's queue to the user of a line: two more where the queue is in block RAM, and what is
#: lost where ports of one table are taken in turn.
_COLLECT = Fifo.DEEP_LATENCY - Fifo.LATENCY + 2
#: Cycles of the keys' registers between what they wait for.
_KEYS_EXTRA = 8
#: Cycles without a burst at any port after which nothing can follow, at least: more than any part takes
#: but for sealing long pages.
_QUIET_CYCLES = 128
#: Cycles on a page's way from its sealer to the bus, and some more.
_QUIET_EXTRA = 32


class Timing:
    """Times of `docs/oram.md`, section "Time, and what the host sees"."""

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        self._schedule = Schedule(config)

    @property
    def keys(self) -> int:
        """From the begin of a launch that initializes to all keys and powers: `hw.oram.core.session.keys`."""
        powers = PowerTable.latency(page_shape(self._config))
        return KeySchedule.LATENCY * 2 + max(KeySchedule.LATENCY * 2, powers) + _KEYS_EXTRA

    @property
    def command(self) -> int:
        """From the acceptance of a command to what the position map is asked."""
        config = self._config
        front = config.interval - 1 + Front.latency(config.interval)  # it takes one in an interval
        opened = 1 + CommandOpener.latency(config)
        return opened + Fifo.LATENCY + front + Fifo.DEEP_LATENCY

    @property
    def position(self) -> int:
        """From the acceptance of a command to the issue of its first touch, at least."""
        config = self._config
        asked = self.command + Skid.LATENCY + LineReader.ADDRESS_LATENCY
        there = LineReader.DATA_LATENCY + _COLLECT + config.interval + Position.LATENCY
        return asked + config.position_cycles + there + Fifo.LATENCY + Issue.LOOK + 1

    @property
    def touch(self) -> int:
        """From the issue of a touch to its turn, at least."""
        asked = 1 + Fifo.DEEP_LATENCY + LineReader.ADDRESS_LATENCY
        there = LineReader.DATA_LATENCY + _COLLECT + Keystream.LATENCY + 2
        return asked + self._config.touch_deadline + there

    @property
    def stage(self) -> int:
        """From a touch's turn to the stage: its pulse, and the page's first beat opened."""
        return 1 + PageOpener.latency(self._config)

    @property
    def page_sealed(self) -> int:
        """From a touch's turn to the last beat of its page, sealed."""
        begins = max(self._schedule.page, self._schedule.seal + Keystream.LATENCY)
        return self.stage + begins + PageSealer.latency(self._config)

    @property
    def response_sealed(self) -> int:
        """From the turn of an operation's last touch to the last beat of its response, sealed."""
        return self.stage + self._schedule.response + ResponseSealer.latency(self._config)

    @property
    def quiet(self) -> int:
        """Without a burst at any port until nothing can follow: an operation's page may be sealed long after
        its response was written.
        """
        return max(_QUIET_CYCLES, self.page_sealed - self.response_sealed + _QUIET_EXTRA)
