"""
A client that is killed again and again: `python -m tests.support.oram.lives FOLDER LIVES SEED`.

One process is the host with the golden map. Another is the client: it ends by SIGKILL, at a random time or
at a step within its writes, and begins again. FOLDER then has `results`, a JSON list of outcomes a line, and
`sent`, a line for each record, each epoch, and each beginning with its unanswered commands.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np

from hw.oram.client.client import Client
from hw.oram.client.session import Session
from hw.oram.client.shared import SharedRings
from hw.oram.client.state import secrets_of
from hw.oram.config import OramConfig
from tests.support.oram.golden_card import GoldenEngine

CONFIG = OramConfig(log_n=8, value_bytes=8)
SLOTS = 4
MASTER = bytes(range(16))
ITEMS = {key: key.to_bytes(8, "little") for key in range(6)}
KEY_COUNT = 30
#: Steps within a life, at most, and seconds of one that is killed at a time.
STEPS, SECONDS = 120, 0.04
#: Commands of which the host changes one.
CHANGED = 20


def call_of(number):
    """Return the kind of a call, and its keys and values."""
    draw = random.Random(number)
    keys = draw.sample(range(KEY_COUNT), draw.choice([1, 1, 2, 6]))
    kind = draw.choice(["get", "put", "put", "delete"])
    return kind, {key: (number << 8 | key).to_bytes(8, "little") for key in keys}


def host(folder):
    """Answer commands for ever."""
    rings = SharedRings(folder / "rings", CONFIG, slots=SLOTS)
    engine, draw = None, random.Random(1)
    while True:
        path = folder / "secrets"
        if path.exists():
            engine = GoldenEngine(
                CONFIG,
                rings.commands,
                rings.responses,
                secrets_of(MASTER, int(path.read_text())),
                changes=lambda number: draw.randrange(CHANGED) == 0,
            )
            path.unlink()
        if engine is None or not engine.advance():
            time.sleep(5e-5)


class Steps:
    """Kills this process at a step of its writes: before one, in its middle, or behind it."""

    def __init__(self, last):
        self.left = last

    def take(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self):
        write = os.write

        def halves(descriptor, content):
            self.take()
            if self.left == 1:
                write(descriptor, content[: len(content) // 2])
            self.take()
            count = write(descriptor, content)
            self.take()
            return count

        os.write = halves
        for name in ("fsync", "replace", "ftruncate"):
            setattr(os, name, self.around(getattr(os, name)))

    def around(self, function):
        def stepped(*arguments):
            self.take()
            function(*arguments)
            self.take()

        return stepped


class SteppedRings(SharedRings):
    """Rings that note each record before the host may see it, and take steps between their parts."""

    def __init__(self, folder, steps, note):
        super().__init__(folder / "rings", CONFIG, slots=SLOTS, load=self.start)
        self.folder, self.steps, self.note = folder, steps, note

    def start(self, secrets):
        self.note(["epoch", secrets.epoch])
        draft = self.folder / "draft"
        draft.write_text(str(secrets.epoch))
        self.steps.take()
        draft.rename(self.folder / "secrets")

    def write(self, number, record):
        row = np.frombuffer(record, np.uint8)
        self.note([self.epoch(), number, hashlib.sha256(record).hexdigest()])
        slot = self.commands[number % SLOTS]
        self.steps.take()
        slot[8:] = row[8:]
        self.steps.take()
        slot[:8] = row[:8]
        self.steps.take()

    def read(self, number):
        record = super().read(number)
        if int.from_bytes(record[:8], "little") == number:
            self.steps.take()
        return record


def live(folder, steps, *, last):
    """Be the client for ever, or in its last life until the interrupted call is done."""
    plain = os.write
    logs = {
        name: os.open(folder / name, os.O_CREAT | os.O_APPEND | os.O_RDWR) for name in ("sent", "results")
    }

    def note(name, line):
        plain(logs[name], json.dumps(line).encode() + b"\n")

    steps.hook()
    rings = SteppedRings(folder, steps, lambda line: note("sent", line))
    session = Session(folder / "session", CONFIG, transport=rings, master=MASTER)
    rings.epoch = lambda: session.state.header.epoch
    client = Client(session, timeout_s=20)
    if session.loaded:
        note("sent", ["unanswered", len(session.state.sent)])
    else:
        client.load(ITEMS.items())
    done = (folder / "results").read_bytes().count(b"\n")
    for number in [done + 1] if last else count(done + 1):
        kind, items = call_of(number)
        method = getattr(client, f"{kind}_many")
        found = method(items if kind == "put" else [*items], number=number)
        steps.take()
        note("results", [value and value.hex() for value in found])
        steps.take()
    found = client.get_many(range(KEY_COUNT), number=done + 2)
    note("results", [value and value.hex() for value in found])


def main(folder, lives, seed):
    draw = random.Random(seed)
    children = [fork(host, folder)]
    try:
        for life in range(lives):
            timed = life % 3 == 0
            child = fork(live, folder, Steps(0 if timed else draw.randint(1, STEPS)), last=False)
            children.append(child)
            if timed:
                time.sleep(draw.uniform(0, SECONDS))
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(children.pop(), 0)
            assert os.WIFSIGNALED(status), status
        children.append(fork(live, folder, Steps(0), last=True))
        _, status = os.waitpid(children.pop(), 0)
        assert status == 0
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def fork(function, *arguments, **options):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function(*arguments, **options)
            code = 0
        finally:
            if code:
                import traceback

                traceback.print_exc()
            os._exit(code)
    return child


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
