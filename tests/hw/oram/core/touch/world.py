"""Surroundings of the controls: a host and an HBM with delays, and operations on few pages."""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import Any

from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.core.touch.times import TouchTimes
from hw.oram.model.admission import Admission
from tests.support.gateware.streams import plain, set_all

#: Secret inputs: an operation is due after its acceptance, the others after their issue.
WAITS = ("operation", "keystream", "record", "fresh")


def draw_operations(
    config: OramConfig, public: Any, secret: Any, count: int, pages: int
) -> list[dict[str, Any]]:
    """Return operations in the form of the position map, on the first pages; ``public`` draws them."""
    padded = config.items > config.label_count
    operations = []
    for n in range(count):
        page_valid, page, record_valid, record = 0, [], [], []
        for label in range(config.label_count):
            host = public.random() < 0.75
            own, hidden = public.randrange(pages), secret.randrange(config.host_pages, config.records)
            if padded:
                record_valid.append(not host and secret.random() < 0.8)
                record.append(hidden)
            with_page = host or padded
            page_valid |= with_page << label
            page.append(own if with_page else secret.randrange(config.records))
            record_valid.append(with_page or secret.random() < 0.8)
            record.append(own if with_page else hidden)
        operations.append(
            {
                "operation": n % (1 << config.operation_bits),
                "code": secret.randrange(5),
                "key": secret.getrandbits(config.key_bits),
                "status": secret.randrange(7),
                "keep": int(secret.random() < 0.6),
                "age": secret.randrange(config.window + 1),
                "page_valid": page_valid,
                "page": page,
                "record_valid": sum(bit << k for k, bit in enumerate(record_valid)),
                "record": record,
                "fresh": [secret.randrange(config.records) for _ in range(config.label_count)],
            }
        )
    return operations


def touches_of(config: OramConfig, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the touches of operations: one for each label, or two, of which the second has the page."""
    per_label = config.items // config.label_count
    same = ("operation", "code", "key", "status", "keep", "age", "fresh")
    return [
        {
            **{name: operation[name] for name in same},
            "first": int(k == 0),
            "last": int(k == config.items - 1),
            "page_valid": (operation["page_valid"] >> k // per_label & 1) * (k % per_label == per_label - 1),
            "record_valid": operation["record_valid"] >> k & 1,
            "record": operation["record"][k],
        }
        for operation in operations
        for k in range(config.items)
    ]


class Answers:
    """Answers in order, each some cycles after its request, at most one a cycle."""

    def __init__(self, seed: str, low: int, high: int, late: int | None = None) -> None:
        self.rng, self.low, self.high = random.Random(seed), low, high
        self.waiting: deque[int] = deque()
        self.came: list[int] = []
        self.late = late  # number of the missing answer

    def ask(self, cycle: int, sooner: int = 0) -> None:
        """Request an answer; ``sooner``: cycles by which the maximum is shorter."""
        self.waiting.append(cycle + self.rng.randint(self.low, self.high - sooner))

    def come(self, cycle: int) -> int:
        if len(self.came) == self.late or not self.waiting or self.waiting[0] > cycle:
            return 0
        self.waiting.popleft()
        self.came.append(cycle)
        return 1


class World:
    """Simulates the host from seed ``public``, and secret times and values from seed ``secret``.

    Parameters
    ----------
    dut
        A `Touch`.
    host, response
        Maximum cycles of the host for any answer; for the write of a response, if different.
    count
        Operations.
    pages
        Number of pages.
    pace
        Share of cycles in which a command arrives.
    late
        Name and number of a missing answer.

    Members
    -------
    pages : list
        Page of every touch, or None.
    forwarded : list
        For every touch: the place that it is forwarded from, or None.
    alone : list
        For every accepted operation: whether it is alone.
    times : Admission
        The host's recorded pulses; `expect` adds the expected actions.
    bus : list
        Public outputs of each cycle: acceptance in the previous cycle, the page requested, admission in the
        previous cycle, the beat sent to the opener.
    turns, records, fresh : list
        Admitted touches; requested records.
    """

    def __init__(
        self,
        config: OramConfig,
        dut: Any,
        *,
        times: TouchTimes,
        host: int,
        response: int = 0,
        count: int = 25,
        pages: int = 6,
        public: int = 0,
        secret: int = 0,
        pace: float = 1.0,
        late: tuple[str, int] = ("", 0),
    ) -> None:
        self.config, self.dut, self.pace = config, dut, pace
        self.rng = random.Random(f"{public} commands")
        labels, values = random.Random(f"{public} labels"), random.Random(f"{secret} values")
        self.operations = draw_operations(config, labels, values, count, pages)
        self.touches = touches_of(config, self.operations)
        self.pages = [touch["record"] if touch["page_valid"] else None for touch in self.touches]
        self.times = Admission(config, times)
        self.sooner = {
            "position": times.position_cycles - times.idle_position_cycles,
            "touch": times.touch_cycles - times.idle_touch_cycles,
        }
        self.host = {
            name: Answers(
                f"{public} {name}", 4, response if response and name == "response_written" else host
            )
            for name in ("page_arrived", "page_left", "page_written", "response_written")
        }
        # In time although at most one arrives a cycle and is counted a cycle later.
        self.hidden = {
            name: Answers(
                f"{secret} {name}",
                4,
                times.position_cycles - 12 if name == "operation" else times.touch_cycles - 8,
                late[1] if name == late[0] else None,
            )
            for name in WAITS
        }
        self.bus: list[tuple[Any, ...]] = []
        self.turns: list[Any] = []
        self.forwarded: list[int | None] = []
        self.records: list[int] = []
        self.fresh: list[int] = []
        self.halted: list[int] = []
        self.alone: list[bool] = []
        self.late: Any = None

    async def run(self, ctx: Any, cycles: int) -> None:
        """Simulate ``cycles`` cycles."""
        dut, there, accepts = self.dut, self.times.command_arrived, 0
        flags = Cat(
            dut.issue.accepted,
            dut.operation.ready,
            dut.page_i.ready,
            dut.halted,
            dut.release.starved,
            dut.issue.alone,
            dut.issue.touch.valid,
            dut.issue.touch_alone,
        )
        streams = (dut.page, dut.record, dut.fresh, dut.turn, dut.beat)
        tick = ctx.tick().sample(flags, *(value for each in streams for value in (each.valid, each.payload)))
        handed = passed = sooner = 0
        for t in range(cycles):
            pulses = {name: answers.come(t) for name, answers in self.host.items()}
            pulses["command_arrived"] = int(
                len(there) < len(self.operations)
                and len(there) - accepts < self.config.command_records
                and self.rng.random() < self.pace
            )
            for name, pulse in pulses.items():
                getattr(self.times, name).extend([t] * pulse)
            for name in WAITS[1:]:
                pulses[f"{name}_arrived"] = self.hidden[name].come(t)
            found = self.hidden["operation"].come(t)
            driven = [(getattr(dut, name), value) for name, value in pulses.items()]
            driven += [(dut.page_i.valid, 1), (dut.page_i.payload, passed), (dut.operation.valid, found)]
            driven += [(ready, 1) for ready in (dut.record.ready, dut.fresh.ready, dut.command_o.ready)]
            driven += [(dut.command_i.valid, 1)]
            if found:
                driven.append((dut.operation.payload, self.operations[handed]))
            set_all(ctx, driven)

            _, _, bits, *seen = await tick
            accepted, ready, taken, halted, starved, alone, issued, touch_alone = (
                bits >> n & 1 for n in range(8)
            )
            page, record, fresh, turn, beat = (
                plain(payload) if valid else None
                for valid, payload in zip(seen[::2], seen[1::2], strict=True)
            )
            assert not starved, "a beat of a page was not there"
            assert ready or not found, "an operation had no place"
            accepts += accepted
            handed += found
            passed += taken
            self.bus.append((accepted, page, turn is not None, beat))
            if issued:
                sooner = touch_alone * self.sooner["touch"]
            if accepted:
                self.alone.append(bool(alone))
                self.hidden["operation"].ask(t, alone * self.sooner["position"])
            if page is not None:
                self.host["page_arrived"].ask(t)
                self.hidden["keystream"].ask(t, sooner)
            if record is not None:
                self.records.append(record["index"])
                self.hidden["record"].ask(t, sooner)
            if fresh is not None:
                self.fresh.append(fresh["index"])
                self.hidden["fresh"].ask(t, sooner)
            if turn is not None:
                place, forward, _ = (turn.pop(name) for name in ("place", "forward", "near"))
                self.forwarded.append(place if forward else None)
                self.turns.append(turn)
                if turn["page_valid"]:
                    self.host["page_left"].ask(t)
                if turn["last"]:
                    self.host["response_written"].ask(t)
            if pulses["page_left"]:
                self.host["page_written"].ask(t)
            if halted:
                self.halted.append(t)
        self.late = plain(ctx.get(dut.late))

    def expect(self) -> Admission:
        """Return the expected actions of a run in which every page was written."""
        pages = iter(self.pages)
        for _ in self.operations:
            self.times.accept()
            for page in itertools.islice(pages, self.config.items):
                self.times.issue(page)
                self.times.admit()
                if page is not None:
                    self.times.release()
        return self.times
