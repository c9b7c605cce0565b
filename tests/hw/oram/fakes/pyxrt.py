"""A replacement of XRT's Python binding: a card whose kernel is the golden map, in a thread.

FAKE_CONFIG has the configuration, FAKE_LOG is the file of calls, one JSON list a line. With FAKE_ANSWERS the
kernel ends after this number of answers; of answer FAKE_FOREIGN a byte is changed. A card with FAKE_EPOCH has
this epoch in its map, not the given one, and one with FAKE_SESSION another session key. FAKE_NOT is the
reason why the card does not open.
"""

import json
import os
import threading
import time
from dataclasses import replace

import numpy as np

from hw.oram.config import OramConfig
from hw.oram.driver.keys import Secrets, Session
from hw.oram.driver.operations import OperationResults
from hw.oram.driver.sealing import STOP, open_commands, seal_responses
from sim.golden.oram.front import map_keys
from sim.golden.oram.map import Command, keyed_map

CONFIG = OramConfig(**json.loads(os.environ["FAKE_CONFIG"]))


def log(*event):
    with open(os.environ["FAKE_LOG"], "a") as file:
        file.write(json.dumps(event) + "\n")


class ert_cmd_state:
    ERT_CMD_STATE_RUNNING = "RUNNING"
    ERT_CMD_STATE_COMPLETED = "COMPLETED"


class xclbin:
    def __init__(self, path):
        pass


class device:
    def __init__(self, index):
        if why := os.environ.get("FAKE_NOT"):
            raise RuntimeError(why)

    def load_xclbin(self, image):
        return "uuid"


class bo:
    normal, host_only = "normal", "host_only"

    def __init__(self, card, size, flags, group):
        log("bo", size, flags, group)
        self.content = np.zeros(min(size, 1 << 20), np.uint8)

    def map(self):
        return memoryview(self.content)


class run(threading.Thread):
    def __init__(self, values, rings):
        super().__init__(daemon=True)
        self.values, self.rings = values, rings
        self.start()

    def key(self, name, words=4):
        return b"".join(self.values[f"{name}{n}"].to_bytes(4, "little", signed=True) for n in range(words))

    def run(self):
        assert self.values["lock"]
        given = Secrets(
            session_key=self.key("session_key"),
            seed=self.key("seed"),
            epoch=int.from_bytes(self.key("epoch", 2), "little"),
        )
        keys, session = map_keys(given.seed, given.epoch), given.session
        if epoch := os.environ.get("FAKE_EPOCH"):
            other = replace(given, epoch=int(epoch)).session.confirm
            session = Session(key=session.key, confirm=other)
        if os.environ.get("FAKE_SESSION"):
            session = Session(key=bytes(16), confirm=session.confirm)
        store = keyed_map(CONFIG, permutation_key=keys.permutation, draw_key=keys.draw)
        commands, responses = self.rings
        for n in range(int(os.environ.get("FAKE_ANSWERS", self.values["operation_count"]))):
            slot = n & (self.values["ring_slots"] - 1)
            while int.from_bytes(commands[slot, :8].tobytes(), "little") != n:
                time.sleep(1e-4)
            if commands[slot, 8] & STOP:
                log("stopped", n)
                return
            (code, key, value), genuine = open_one(session, commands[slot][None].copy(), n)
            log("opened", code, genuine)
            (end,) = store.run([Command(code, key, value, not genuine)])
            results = OperationResults(
                statuses=np.array([end.status], np.uint8),
                keys=np.array([end.key], np.uint64),
                values=np.frombuffer(end.value, np.uint8)[None],
            )
            sealed = seal_responses(CONFIG, session, results, first=n)[0]
            sealed[40] ^= str(n) == os.environ.get("FAKE_FOREIGN")
            responses[slot] = sealed

    def state(self):
        return ert_cmd_state.ERT_CMD_STATE_RUNNING if self.is_alive() else self.wait(0)

    def wait(self, timeout_ms):
        self.join(timeout_ms / 1000)
        return ert_cmd_state.ERT_CMD_STATE_COMPLETED


def open_one(session, record, number):
    opened = open_commands(CONFIG, session, record, first=number)
    found = opened.results
    return (int(found.statuses[0]), int(found.keys[0]), found.values[0].tobytes()), bool(opened.genuine[0])


class kernel:
    shared = "shared"

    def __init__(self, card, uuid, name, mode):
        log("kernel", name)

    def group_id(self, index):
        return index

    def __call__(self, *arguments):
        from hw.oram.kernel.arguments import argument_table

        values = dict(zip((a.name for a in argument_table(CONFIG).call), arguments, strict=True))
        log("call", {name: value for name, value in values.items() if not isinstance(value, bo)})
        rings = [values[name].content.reshape(values["ring_slots"], -1) for name in ("commands", "responses")]
        return run(values, rings)
