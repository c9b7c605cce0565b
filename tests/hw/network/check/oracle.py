"""Every order of a tiny program's accesses that its waits allow, one after the other."""

from __future__ import annotations

import itertools

import numpy as np

#: A word of the memory, beside granules of the scratchpad.
MEMORY = "memory"


class Oracle:
    """Events of a program as bits; an event may happen when all that it needs have happened."""

    def __init__(self, tasks):
        self._tasks = tasks
        self.needs, self.reads, self.writes, self.owner = [], [], [], []
        self._cores = {
            core: [n for n, task in enumerate(tasks.tasks) if task.core == core] for core in range(3)
        }
        # Bits by name: ("start", task), ("write", task, number), ("complete", direction, number), ...
        self._bits = {name: 1 << n for n, name in enumerate(self._names())}
        self._impossible = 1 << len(self._bits)
        for name in self._bits:
            self._describe(name)
        everything = range(len(self.needs))
        self.conflicts = [
            sum(1 << b for b in everything if a != b and self._conflict(a, b)) for a in everything
        ]

    def verdict(self):
        """Tell whether every order ends, with all accesses that conflict in the same order."""
        return self._program_order() and self._every_order()

    def _names(self):
        for number, task in enumerate(self._tasks.tasks):
            yield "start", number
            for s, reads in enumerate(task.accesses.reads):
                yield from (("read", number, s, n) for n in range(len(reads.granules)))
            yield from (("write", number, n) for n in range(len(task.accesses.writes)))
            yield "finish", number
        for direction in ("reads", "writes"):
            for number, transfer in enumerate(getattr(self._tasks, direction)):
                yield "go", direction, number
                for word, way in itertools.product(range(transfer.words), ("take", "put")):
                    yield way, direction, number, word
                yield "complete", direction, number

    def _describe(self, name):
        need, reads, writes = getattr(self, f"_{name[0]}")(*name[1:])
        self.needs.append(need)
        self.reads.append({*reads} - {-1})
        self.writes.append({*writes} - {-1})
        self.owner.append(name[1] if name[0] in ("read", "write") else None)

    def _conflict(self, a, b):
        return bool(self.writes[a] & (self.reads[b] | self.writes[b]) or self.reads[a] & self.writes[b])

    def _finished(self, counts):
        found = 0
        for core, count in enumerate(counts):
            for n in range(count):
                own = self._cores[core]
                found |= self._bits["finish", own[n]] if n < len(own) else self._impossible
        return found

    def _completed(self, direction, count):
        bits = (self._bits.get(("complete", direction, n), self._impossible) for n in range(count))
        return sum({*bits})

    def _before(self, number):
        """Return the commands of its core before a command."""
        own = self._cores[self._tasks.tasks[number].core]
        return own[: own.index(number)]

    def _start(self, number):
        task = self._tasks.tasks[number]
        need = self._finished(task.waits) | self._completed("reads", task.wait_reads)
        need |= self._completed("writes", task.wait_writes)
        for other in self._before(number):
            need |= self._bits["start", other]
        return need, (), ()

    def _words(self, core, number):
        """Return the words of a core's commands before a command: none follows itself."""
        return [
            self._bits["write", n, word]
            for n in self._cores[core]
            if n < number
            for word in range(len(self._tasks.tasks[n].accesses.writes))
        ]

    def _read(self, number, stream, request):
        task = self._tasks.tasks[number]
        reads, follow, need = task.accesses.reads[stream], task.follow, self._bits["start", number]
        if reads.gated and follow is not None:
            words = self._words(follow.core, number)
            for n in range(min(request + 1, follow.tiles * follow.per_tile)):
                tile, read = divmod(n, follow.per_tile)
                count = follow.first + tile * follow.tile_step + read * follow.step + 1
                for word in range(count):
                    need |= words[word] if word < len(words) else self._impossible
        return need, reads.granules[request].tolist(), ()

    def _write(self, number, word):
        task = self._tasks.tasks[number]
        need = self._bits["start", number]
        for other in self._before(number):
            for n in range(len(self._tasks.tasks[other].accesses.writes)):
                need |= self._bits["write", other, n]
        for n in range(word):
            need |= self._bits["write", number, n]
        for s, reads in enumerate(task.accesses.reads):
            for n in np.flatnonzero(reads.before <= word).tolist():
                need |= self._bits["read", number, s, n]
        return need, (), task.accesses.writes[word].tolist()

    def _finish(self, number):
        need = self._bits["start", number]
        for name, bit in self._bits.items():
            if name[0] in ("read", "write") and name[1] == number:
                need |= bit
        for other in self._before(number):
            need |= self._bits["finish", other]
        return need, (), ()

    def _go(self, direction, number):
        transfer = getattr(self._tasks, direction)[number]
        other = "writes" if direction == "reads" else "reads"
        need = self._finished(transfer.starts) | self._completed(other, transfer.others)
        return need | self._bits.get(("go", direction, number - 1), 0), (), ()

    def _places(self, direction, number, word):
        transfer = getattr(self._tasks, direction)[number]
        first = 4 * (transfer.address + word)
        return range(first, first + 4), ((MEMORY, transfer.dram_address + word),)

    def _take(self, direction, number, word):
        granules, home = self._places(direction, number, word)
        return self._bits["go", direction, number], home if direction == "reads" else granules, ()

    def _put(self, direction, number, word):
        granules, home = self._places(direction, number, word)
        need = self._bits["take", direction, number, word]
        for name, bit in self._bits.items():
            if name[:2] == ("put", direction) and name[2:] < (number, word):
                need |= bit
        return need, (), granules if direction == "reads" else home

    def _complete(self, direction, number):
        need = self._bits["go", direction, number]
        for name, bit in self._bits.items():
            if name[:3] == ("put", direction, number):
                need |= bit
        return need | self._bits.get(("complete", direction, number - 1), 0), (), ()

    def _program_order(self):
        """Tell whether commands can run one by one, with transfers between them."""
        done, allowed = 0, sum(bit for name, bit in self._bits.items() if isinstance(name[1], str))
        for number in range(len(self._tasks.tasks)):
            own = sum(bit for name, bit in self._bits.items() if name[1] == number)
            allowed |= own
            done = self._closure(done, allowed)
            if done & own != own:
                return False
        return self._closure(done, allowed) == self._impossible - 1

    def _closure(self, done, allowed):
        while True:
            more = done
            for n, need in enumerate(self.needs):
                if allowed >> n & 1 and need & done == need:
                    more |= 1 << n
            if more == done:
                return done
            done = more

    def _every_order(self):
        events = [(n, 1 << n, need, self.conflicts[n]) for n, need in enumerate(self.needs)]
        before = [0] * len(events)
        seen, stack = {0}, [0]
        while stack:
            done = stack.pop()
            stuck = True
            for n, bit, need, conflicts in events:
                if not done & bit and need & done == need:
                    stuck = False
                    before[n] |= done & conflicts
                    following = done | bit
                    if following not in seen:
                        seen.add(following)
                        stack.append(following)
            if stuck and done != self._impossible - 1:
                return False
        self.states = len(seen)
        return all(self._ordered(a, b, before) for a in range(len(events)) for b in range(a))

    def _ordered(self, a, b, before):
        """Tell whether event b, which is listed first, and a are always in the same, right order."""
        if not self.conflicts[a] >> b & 1:
            return True
        turned = before[b] >> a & 1
        if self.owner[a] is None or self.owner[b] is None:
            return not (turned and before[a] >> b & 1)
        return not turned
