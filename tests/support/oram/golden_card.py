"""The golden map behind rings: a card for tests of clients, with a host that may change commands."""

import numpy as np

from hw.oram.client.shared import write_record
from hw.oram.driver.operations import OperationResults
from hw.oram.driver.sealing import open_commands, seal_responses
from sim.golden.oram.front import map_keys
from sim.golden.oram.map import Command, keyed_map


class GoldenEngine:
    """The engine from its initialization on.

    ``changes``: whether the host changes the command of a number.
    """

    def __init__(self, config, commands, responses, secrets, *, changes=lambda number: False):
        self.config, self.commands, self.responses = config, commands, responses
        self.session, self.changes = secrets.session, changes
        keys = map_keys(secrets.seed, secrets.epoch)
        self.map = keyed_map(config, permutation_key=keys.permutation, draw_key=keys.draw)
        self.number = self.rejected = 0

    def advance(self):
        """Answer the next command if it is there."""
        slot = self.number % len(self.commands)
        if int.from_bytes(self.commands[slot, :8].tobytes(), "little") != self.number:
            return False
        record = self.commands[slot][None].copy()
        record[0, 40] ^= self.changes(self.number)
        opened = open_commands(self.config, self.session, record, first=self.number)
        found, genuine = opened.results, bool(opened.genuine[0])
        command = Command(int(found.statuses[0]), int(found.keys[0]), found.values[0].tobytes(), not genuine)
        (end,) = self.map.run([command])
        results = OperationResults(
            statuses=np.array([end.status], np.uint8),
            keys=np.array([end.key], np.uint64),
            values=np.frombuffer(end.value, np.uint8)[None],
        )
        sealed = seal_responses(self.config, self.session, results, first=self.number)[0]
        write_record(self.responses[slot], sealed.tobytes())
        self.number += 1
        self.rejected += not genuine
        return True


class GoldenCard:
    """A `Transport` whose engine answers before each look at a response.

    ``texts`` has all records written.
    """

    def __init__(self, config, *, slots=8, changes=lambda number: False):
        self.config, self.slots, self.changes = config, slots, changes
        self.commands, self.responses = np.zeros((2, slots, config.command_bytes), np.uint8)
        self.engine, self.epoch, self.texts, self.epochs = None, None, {}, []
        self.reason, self.silent = "", False

    def initialize(self, secrets):
        self.commands[:], self.responses[:], self.reason = 255, 0, ""
        self.epoch = secrets.epoch
        self.epochs.append(secrets.epoch)
        self.engine = GoldenEngine(
            self.config, self.commands, self.responses, secrets, changes=lambda n: self.changes(n)
        )

    def write(self, number, record):
        assert int.from_bytes(record[:8], "little") == number
        self.texts.setdefault((self.epoch, number), []).append(record)
        write_record(self.commands[number % self.slots], record)

    def read(self, number):
        while not (self.reason or self.silent) and self.engine and self.engine.advance():
            pass
        return self.responses[number % self.slots].tobytes()

    def ended(self):
        return self.reason

    def check_nonces(self):
        """No number of an epoch has two texts, and no epoch serves twice."""
        assert all(len(set(texts)) == 1 for texts in self.texts.values())
        assert len(set(self.epochs)) == len(self.epochs)
