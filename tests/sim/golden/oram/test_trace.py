"""The computed trace equals that of a machine simulated cycle by cycle."""

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.touch.times import TouchTimes
from sim.golden.oram.hosts import RecordedHost
from sim.golden.oram.trace import PAGES, RING, Burst, BusLaunch, Latencies, bursts, simulate
from tests.support.oram.hosts import SteadyHost

TOUCHES = TouchTimes(
    position_cycles=24,
    touch_cycles=40,
    idle_position_cycles=19,
    idle_touch_cycles=33,
    rest_cycles=26,
    forward_cycles=25,
)
TIMING = Latencies(touches=TOUCHES, seal=31, response=17)
LAUNCH = BusLaunch(pages=1 << 20, commands=1 << 12, responses=1 << 14, slots=64, first=50, start=5, poll=40)
CONFIG = OramConfig(
    log_n=8, inflight=16, alpha=0.2, position_cycles=20, touch_cycles=32, settle_cycles=30, position_ports=2
)


@dataclass
class JitterHost(SteadyHost):
    """Every handshake has a random delay, drawn by channel; ``log`` is the recording of the bus."""

    seed: int = 0

    def __post_init__(self):
        self._rngs = {}
        self._last = defaultdict(lambda: -1)
        self.log = RecordedHost(*(defaultdict(list) for _ in range(4)), [])

    def _draw(self, what, most):
        rng = self._rngs.setdefault(what, np.random.default_rng([self.seed, *map(ord, str(what))]))
        return int(rng.integers(most)) if rng.random() < 0.4 else 0

    def address_handshake(self, port, write, valid):
        wait = self._draw((port, write), 9)
        self.log.address_waits[port, write].append(wait)
        return valid + wait

    def read_handshakes(self, port, accepted, beats):
        came = [max(accepted + self.read_latency + self._draw((port, "r"), 60), self._last[port, "r"] + 1)]
        for _ in range(beats - 1):
            came.append(came[-1] + 1 + self._draw((port, "gap"), 4))
        self._last[port, "r"] = came[-1]
        self.log.data[port].append(came)
        return came

    def write_handshake(self, port, valid):
        wait = self._draw((port, "w"), 3)
        self.log.beat_waits[port].append(wait)
        return valid + wait

    def write_answer(self, port, accepted, last):
        at = max(accepted, last) + self.write_latency + self._draw((port, "b"), 90)
        at = self._last[port, "b"] = max(at, self._last[port, "b"] + 1)
        self.log.answers[port].append(at)
        return at

    def has_command(self, number, accepted):
        found = super().has_command(number, accepted)
        self.log.found.append(found)
        return found


class Machine:
    """The function of `simulate`, cycle by cycle: registers, counters and queues in place of formulas."""

    def __init__(self, config, timing, launch, host, touched):
        self.config, self.timing, self.launch, self.host = config, timing, launch, host
        self.touches = [page for pages in touched for page in pages]
        self.operations = len(touched)
        self.accesses, self.later = [], defaultdict(list)
        self.t = launch.start
        # Counters of the controls.
        self.arrived = self.waiting = self.inflight = self.writing = self.answering = self.on_board = 0
        self.commands = 0
        self.accepts, self.issues, self.turns = deque(), deque(), deque()
        self.accept_from = self.issue_from = self.turn_from = 0
        self.accepted = self.issued = self.turned = 0
        # Operations accepted and not admitted, from when the next one is alone, and whether each was.
        self.under_way = self.alone_from = 0
        self.were_alone, self.issuing_alone = [], False
        self.clear_from, self.pages_arrived, self.unreleased = Counter(), 0, deque()  # by page
        # Requests of commands.
        self.held, self.next, self.known, self.alone = 0, 0, 0, False
        self.resume_from, self.outstanding = 0, 0
        self.held_before, self.changed = 0, launch.start - 3
        self.asked, self.coming = deque(), []
        # Waiting responses, and those written and not counted.
        self.whole, self.due = [], 0
        self.ended = self.halted = False  # the stop record was compared; no further request
        self.reads = {port: deque() for port in (PAGES, RING)}
        self.writes = {port: deque() for port in (PAGES, RING)}
        self.beats = {port: deque() for port in (PAGES, RING)}
        self.busy = defaultdict(lambda: -1)

    def at(self, cycle, do, *args):
        assert cycle > self.t or (cycle == self.t and do.__name__ == "taken")
        self.later[cycle].append((do, args))

    def run(self):
        while self.answered < self.operations or self.later or not self.quiet:
            for do, args in self.later.pop(self.t, ()):
                do(*args)
            self.request()
            self.gates()
            self.respond()
            for port in (PAGES, RING):
                self.bus(port)
            self.t += 1
            assert self.t < 500_000
        return sorted(self.accesses)

    answered = 0

    @property
    def quiet(self):
        return not any(map(len, (*self.reads.values(), *self.writes.values(), *self.beats.values())))

    def add(self, name, number):
        setattr(self, name, getattr(self, name) + number)

    # Commands.
    def request(self):
        if self.dropping and not self.outstanding and self.t >= self.resume_from:
            self.drop_from, self.alone, self.next, self.changed = None, True, self.known, self.t + 1
        elif self.t >= self.changed + 3 and not self.dropping and not self.halted:
            self.ask()
        self.held_before = self.held

    def group(self, number):
        """Return the slot of a record, and whether it is the last of its group."""
        slot = (self.launch.first + number) % self.launch.slots
        return (
            slot,
            slot == self.launch.slots - 1 or slot % self.config.ring_group == self.config.ring_group - 1,
        )

    def ask(self):
        count = 0
        while self.launch.endless or self.next + count < self.operations:
            count += 1
            if self.alone or self.group(self.next + count - 1)[1]:
                break
        room = self.held_before + count <= self.config.command_records
        if not count or not room or (self.alone and self.outstanding):
            return
        size = self.config.command_bytes
        block = None, self.launch.commands + self.group(self.next)[0] * size, count * size
        self.reads[RING].extend(self.split(self.t + self.timing.command_address, block))
        self.asked.extend(range(self.next, self.next + count))
        self.next += count
        self.held += count
        self.outstanding += count
        self.changed = self.t

    def came(self, taken, cycles):
        """Beats of commands will arrive."""
        for cycle in cycles:
            self.coming.append(taken)
            if len(self.coming) == 1:
                self.at(cycle + self.timing.command_seen, self.compare, self.asked[0], taken)
            if len(self.coming) == self.config.command_bytes // 64:
                self.at(cycle + self.timing.command_seen, self.complete, self.asked.popleft(), cycle)
                self.coming.clear()

    def compare(self, number, accepted):
        """A command's first beat is compared."""
        if self.dropping or self.ended:
            return
        if self.host.has_command(number, accepted):
            if number == self.operations:
                self.ended = True
                self.later[self.t + 1].append((setattr, (self, "halted", True)))
                self.refused = number
        else:
            self.drop_from, self.resume_from = self.t + 1, self.t + 1 + self.launch.poll
            self.refused = number

    drop_from = refused = None

    @property
    def dropping(self):
        return self.drop_from is not None and self.t >= self.drop_from

    def complete(self, number, last):
        """A command's last beat is compared."""
        self.later[self.t + 1].append((self.add, ("outstanding", -1)))
        if self.ended or self.dropping or self.refused == number:
            self.later[self.t + 1].append((self.add, ("held", -1)))
            self.refused = None
            return
        self.known += 1
        if self.alone:
            self.changed = self.t
            self.at(self.t + 1, setattr, self, "alone", False)
        self.at(last + self.timing.command_arrived, self.add, "commands", 1)
        self.at(last + self.timing.command_arrived + 1, self.add, "arrived", 1)

    # Controls.
    def gates(self):
        config, timing, items, t = self.config, self.timing, self.config.items, self.t
        touches = timing.touches
        if self.arrived and t >= self.accept_from and self.waiting < config.accepted:
            self.arrived -= 1
            self.waiting += 1
            self.accept_from = t + config.interval
            alone = not self.under_way and t >= self.alone_from
            self.were_alone.append(alone)
            self.under_way += 1
            self.accepts.append((t, alone))
            self.at(t + config.command_bytes // 64 + 1, self.add, "held", -1)
        j = self.issued
        first, last = j % items == 0, j % items == items - 1
        if j < len(self.touches) and (self.accepts or not first) and t >= self.issue_from:
            page = self.touches[j]
            may = not first
            if first and self.inflight < config.inflight:
                begun, self.issuing_alone = self.accepts[0]
                wait = touches.idle_position_cycles if self.issuing_alone else touches.position_cycles
                may = t >= begun + wait
            if may and self.on_board < config.scoreboard_pages:
                if first:
                    self.accepts.popleft()
                    self.inflight += 1
                    self.at(t + 2, self.add, "waiting", -1)
                self.issued += 1
                self.issue_from = t + config.item_cycles
                wait = touches.idle_touch_cycles if self.issuing_alone else touches.touch_cycles
                self.issues.append((t + wait, page, last))
                if page is not None:
                    self.on_board += 1
                    block = None, self.launch.pages + page * config.page_bytes, config.page_bytes
                    self.reads[PAGES].extend(self.split(t + timing.read_address, block))
        if self.issues and t >= self.turn_from:
            due, page, last = self.issues[0]
            may = t >= due and self.writing < config.write_pages
            may = may and (page is None or (self.pages_arrived and t >= self.clear_from[page]))
            if may and not (last and self.answering >= config.response_records):
                self.issues.popleft()
                self.turn_from = t + config.item_cycles
                if page is not None:
                    self.pages_arrived -= 1
                    self.clear_from[page] = t + touches.forward_cycles
                    self.writing += 1
                    self.unreleased.append([None, t + config.record_sizes.settle_cycles, False])
                    block = (
                        self.unreleased[-1],
                        self.launch.pages + page * config.page_bytes,
                        config.page_bytes,
                    )
                    self.writes[PAGES].extend(self.split(t + timing.seal + timing.write_address, block))
                if last:
                    self.under_way -= 1
                    self.alone_from = t + touches.rest_cycles
                    self.at(t + 2, self.add, "inflight", -1)
                    self.answering += 1
                    self.at(t + timing.response, self.whole.append, (t + timing.response, self.turned))
                    self.turned += 1
        if self.unreleased and self.unreleased[0][2] and t >= self.unreleased[0][1]:
            self.unreleased.popleft()
            self.at(t + 1, self.add, "on_board", -1)

    # Responses.
    def respond(self):
        if self.whole:
            (begun, first), (_, last) = self.whole[0], self.whole[-1]
            came, waited = self.whole[-1][0], self.t == begun + self.timing.response_wait
            alone = came == self.t and last + 1 == self.commands
            if self.group(last)[1] or alone or waited:
                size, count = self.config.command_bytes, len(self.whole)
                block = count, self.launch.responses + self.group(first)[0] * size, count * size
                self.writes[RING].extend(self.split(self.t + self.timing.response_address, block))
                self.whole.clear()
        if self.due:
            self.due -= 1
            self.at(self.t + 1, self.add, "answering", -1)

    # Bus.
    def split(self, valid, block):
        what, address, size = block
        parts = list(bursts(address, size))
        return [
            (valid, what, start, bytes_, at == len(parts) - 1) for at, (start, bytes_) in enumerate(parts)
        ]

    def bus(self, port):
        t = self.t
        for queue, write in ((self.reads[port], False), (self.writes[port], True)):
            if queue and t >= queue[0][0] and t > self.busy[port, write]:
                _, what, start, bytes_, last = queue.popleft()
                taken = self.busy[port, write] = self.host.address_handshake(port, write, t)
                self.accesses.append(Burst(taken, port, write, start, bytes_))
                if write:
                    for beat in range(bytes_ // 64):
                        final = beat == bytes_ // 64 - 1
                        self.beats[port].append((what, taken, final, final and last))
                else:
                    came = self.host.read_handshakes(port, taken, bytes_ // 64)
                    if port == PAGES and last:
                        self.at(came[-1] + self.timing.page_arrived + 1, self.add, "pages_arrived", 1)
                    if port == RING:
                        self.came(taken, came)
        if self.beats[port] and t > self.busy[port, "beat"]:
            what, taken, of_burst, of_block = self.beats[port].popleft()
            sent = self.busy[port, "beat"] = self.host.write_handshake(port, t)
            if of_burst:
                answer = self.host.write_answer(port, taken, sent)
            if of_block and port == PAGES:
                self.at(sent + self.timing.page_left + 1, self.add, "writing", -1)
                self.at(answer + self.timing.page_written + 1, what.__setitem__, 2, True)
            elif of_block:
                self.answered += what
                self.at(answer + self.timing.response_written, self.add, "due", what)


def touched(config, rng, count, pages=None):
    """Draw pages as an oblivious map touches them, or few of them so that they collide."""
    pages = pages or config.host_pages
    return [
        [
            int(rng.integers(pages)) if at % 2 == config.items - 1 or rng.random() < 0.7 else None
            for at in range(config.items)
        ]
        for _ in range(count)
    ]


def recorded(log):
    """Return the recording, without the random generators."""
    parts = (log.address_waits, log.data, log.beat_waits, log.answers)
    return RecordedHost(*({key: iter(seen) for key, seen in part.items()} for part in parts), iter(log.found))


CONFIGS = {
    "one-skip": CONFIG,
    "one-always": replace(CONFIG, pad="always"),
    "both-skip": replace(CONFIG, touch="both"),
    "both-always": replace(CONFIG, touch="both", pad="always"),
    "large": replace(CONFIG, value_bytes=192, inflight=4),  # pages of several bursts, commands of 4 beats
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("pages", [3, None])
@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_trace_is_that_of_the_machine(name, endless, pages):
    config = CONFIGS[name]
    rng = np.random.default_rng([*map(ord, name), endless, bool(pages)])
    count = 60
    asked = touched(config, rng, count, pages)
    commands = np.cumsum(rng.choice([0, 3, 30, 400], p=[0.6, 0.28, 0.08, 0.04], size=count + 1)).tolist()
    launch = replace(LAUNCH, endless=endless)
    host = JitterHost(read_latency=60, write_latency=80, commands=commands, seed=len(name))
    trace = simulate(config, TIMING, launch, host, asked)
    machine = JitterHost(read_latency=60, write_latency=80, commands=commands, seed=len(name))
    assert trace.accesses == Machine(config, TIMING, launch, machine, asked).run()
    assert simulate(config, TIMING, launch, recorded(host.log), asked).accesses == trace.accesses


def test_every_limit_is_met():
    """Full queues delay operations: with few pages, with slow answers, with slow writes."""
    config = replace(CONFIG, inflight=4, alpha=0)
    rng = np.random.default_rng(4)
    for latency in (20, 3000):
        asked = touched(config, rng, 80)
        hosts = [JitterHost(read_latency=latency, write_latency=latency) for _ in range(2)]
        trace = simulate(config, TIMING, LAUNCH, hosts[0], asked)
        assert trace.accesses == Machine(config, TIMING, LAUNCH, hosts[1], asked).run()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("value", "inflight", "slots"), [(8, 64, 64), (8, 64, 4), (128, 32, 32), (384, 8, 16)]
)
def test_groups_end_with_the_ring_and_bursts_with_their_address(value, inflight, slots):
    """Rings that begin anywhere, groups of up to 16 records of a beat, four of three, and none of seven."""
    config = replace(CONFIG, value_bytes=value, inflight=inflight, alpha=0)
    launch = replace(LAUNCH, commands=0x1040, responses=0x20180, slots=slots, endless=True)
    rng = np.random.default_rng(value + inflight)
    count = 150
    asked = touched(config, rng, count)
    commands = np.cumsum(rng.choice([0, 400], p=[0.98, 0.02], size=count + 1)).tolist()
    hosts = [JitterHost(read_latency=60, write_latency=80, commands=commands) for _ in range(2)]
    trace = simulate(config, TIMING, launch, hosts[0], asked)
    assert trace.accesses == Machine(config, TIMING, launch, hosts[1], asked).run()
    sizes = {access.bytes for access in trace.accesses if access.port == RING}
    assert max(sizes) <= 1024
    assert len(sizes) > (config.ring_group > 1)


def test_steady_trace_by_hand():
    """One operation after the other on an idle machine; then pages the interval apart."""
    config = replace(CONFIG, alpha=0)
    host = SteadyHost(read_latency=100, write_latency=200)
    trace = simulate(config, TIMING, LAUNCH, host, [[7]])
    command = 5 + 7
    accept = command + 100 + 4
    issue = accept + 19
    there = issue + 8 + 100 + 3  # four beats
    turn = there + 2
    assert trace.accesses == [
        Burst(command, RING, False, (1 << 12) + 50 * 64, 64),
        Burst(issue + 8, PAGES, False, (1 << 20) + 7 * 256, 256),
        Burst(turn + 17 + 8, RING, True, (1 << 14) + 50 * 64, 64),
        Burst(turn + 31 + 3, PAGES, True, (1 << 20) + 7 * 256, 256),
    ]
    assert trace.times.released == [turn + 31 + 3 + 3 + 200 + 2]
    roomy = replace(config, inflight=128)
    host = SteadyHost(read_latency=100, write_latency=200)
    trace = simulate(roomy, TIMING, LAUNCH, host, [[n % 32] for n in range(20)])
    first, *gaps = np.diff(trace.times.admitted).tolist()
    assert first == roomy.interval + TOUCHES.position_cycles - TOUCHES.idle_position_cycles
    assert set(gaps) == {roomy.interval}


def test_a_page_waits_for_its_composed_beats_alone():
    config = replace(CONFIG, alpha=0)
    always = replace(
        TOUCHES, idle_position_cycles=TOUCHES.position_cycles, idle_touch_cycles=TOUCHES.touch_cycles
    )
    timing = replace(TIMING, touches=always)
    times = simulate(config, timing, LAUNCH, SteadyHost(), [[3], [4], [3], [5], [4]]).times
    assert np.diff(times.issued).tolist() == [config.interval] * 4
    first, second, *others = times.admitted
    assert second == first + config.interval
    assert others == [first + TOUCHES.forward_cycles + gap for gap in (0, 4, 8)]
    assert times.released[0] > others[-1]


def test_touches_must_be_as_many_as_the_engine_has():
    with pytest.raises(ValueError, match="operation 1 has 2 touches instead of 1"):
        simulate(CONFIG, TIMING, LAUNCH, SteadyHost(), [[3], [4, 5]])
