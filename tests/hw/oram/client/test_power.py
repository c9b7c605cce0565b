"""Processes that end at any moment, and power that fails: of each file as much is left as a disk may keep."""

import os
import random
from functools import partial

import pytest

from hw.oram.client.client import Client
from hw.oram.client.session import Session
from hw.oram.config import OramConfig
from tests.support.oram.golden_card import GoldenCard

CONFIG = OramConfig(log_n=8, value_bytes=8)
KEYS = {"master": bytes(range(32))}


class PowerFailure(BaseException):
    """The machine stops."""


class Disk:
    """Knows what is on the disk, and stops the machine before a step.

    ``files``: contents by inode as they were last synchronized. ``names``: inodes by path, idem.
    """

    def __init__(self, monkeypatch, draw):
        self.draw, self.left = draw, 0
        self.files, self.names = {}, {}
        for name in ("write", "fsync", "replace"):
            monkeypatch.setattr(os, name, partial(getattr(self, name), getattr(os, name)))

    def step(self):
        self.left -= 1
        if self.left == 0:
            raise PowerFailure

    def write(self, real, descriptor, content):
        self.step()
        return real(descriptor, content)

    def fsync(self, real, descriptor):
        self.step()
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if os.path.isdir(path):
            self.names |= {entry.path: entry.inode() for entry in os.scandir(path)}
        else:
            with open(path, "rb") as file:
                self.files[os.fstat(descriptor).st_ino] = file.read()
        self.step()

    def replace(self, real, source, target):
        self.step()
        real(source, target)
        self.step()

    def fail(self, folder):
        """Leave each file with its old or its new name, and with some of what was not synchronized."""
        draw, left = self.draw, {}
        for name in ("journal", "epochs"):
            path = str(folder / name)
            now = os.stat(path).st_ino if os.path.exists(path) else None
            inode = draw.choice([now, self.names.get(path)])
            if inode is None:
                continue
            kept = self.files.get(inode, b"")
            if inode == now:
                with open(path, "rb") as file:
                    lost = bytearray(file.read()[len(kept) :])
                del lost[draw.randint(0, len(lost)) :]
                if lost and draw.randrange(2):
                    lost[draw.randrange(len(lost))] ^= 1 << draw.randrange(8)
                kept += lost
            left[path] = kept
        for name in ("journal", "epochs"):
            (folder / name).unlink(missing_ok=True)
        for path, content in left.items():
            with open(path, "wb") as file:
                file.write(content)
            inode = os.stat(path).st_ino
            self.names[path], self.files[inode] = inode, content


@pytest.mark.parametrize(("calls", "seed"), [(1000, 1), pytest.param(20_000, 2, marks=pytest.mark.soak)])
def test_no_text_but_one_under_a_number(calls, seed, tmp_path, monkeypatch):
    draw = random.Random(seed)
    card = GoldenCard(CONFIG, slots=4, changes=lambda number: draw.randrange(10) == 0)
    disk, known, number, failures, loaded = Disk(monkeypatch, draw), {}, 1, 0, False
    while number <= calls:
        disk.left = draw.randint(1, 60)
        session = None
        try:
            session = Session(tmp_path, CONFIG, transport=card, journal_bytes=2000, **KEYS)
            client = Client(session, timeout_s=5)
            if not session.loaded:
                assert not loaded  # a loaded map is never given up
                client.load(known.items())
            loaded = True
            while number <= calls:
                rng = random.Random(number)
                items = {
                    key: number.to_bytes(8, "little") for key in rng.sample(range(12), rng.randint(1, 5))
                }
                assert client.put_many(items, number=number) == [known.get(key) for key in items]
                known |= items
                number += 1
        except PowerFailure:
            failures += 1
            disk.left = 0
            if session is not None:
                session.close()
            if draw.randrange(2):  # else the process alone ends
                disk.fail(tmp_path)
    card.check_nonces()
    assert failures > calls / 10
