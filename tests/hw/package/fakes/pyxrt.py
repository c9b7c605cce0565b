"""Stands in for XRT's Python binding: buffers with a host and a card side, a card that computes c = a + b.

In the process of a test ``compute`` may be another card: a function of the kernel's name and the arguments.

Every call goes to the file named by FAKE_LOG, one JSON list a line.  FAKE_STATE is the state a run ends in,
FAKE_OFFSET how far into a page buffers begin, FAKE_NOT why the card does not open.
FAKE_SEEN names a folder for what the card's memory holds when the call begins, by the argument's index;
FAKE_RESULTS files of what is written there instead of sums, by index, in JSON.
"""

import json
import os

import numpy as np

compute = None


def log(*event, path=None):
    with open(path or os.environ["FAKE_LOG"], "a") as file:
        file.write(json.dumps(event) + "\n")


class xclBOSyncDirection:
    XCL_BO_SYNC_BO_TO_DEVICE = "to"
    XCL_BO_SYNC_BO_FROM_DEVICE = "from"


class xclbin:
    def __init__(self, path):
        self.path = path


class device:
    def __init__(self, index):
        if why := os.environ.get("FAKE_NOT"):
            raise RuntimeError(why)
        log("device", index)

    def load_xclbin(self, image):
        assert isinstance(image, xclbin)
        log("load_xclbin", image.path)
        return "uuid"


class bo:
    normal = "normal"
    host_only = "host_only"
    count = 0

    def __init__(self, card, size, flags, group):
        assert isinstance(card, device)
        assert isinstance(size, int)
        if size > int(os.environ.get("FAKE_ROOM", size)):
            raise RuntimeError("bad_alloc")
        log("bo", size, flags, group)
        # The card's memory holds what an earlier program left.
        self.host, self.card = bytearray(size), bytearray(b"\xa5" * size)
        self.place = 0x10_0000_0000 * bo.count + int(os.environ.get("FAKE_OFFSET", "0"))
        bo.count += 1

    def address(self):
        return self.place

    def write(self, content, seek):
        view = memoryview(content).cast("B")
        self.host[seek : seek + len(view)] = view

    def read(self, size, skip):
        return np.frombuffer(bytes(self.host[skip : skip + size]), dtype=np.int8)

    def sync(self, direction, size, offset):
        source, sink = (self.host, self.card) if direction == "to" else (self.card, self.host)
        sink[offset : offset + size] = source[offset : offset + size]
        log("sync", direction, size, offset)


class run:
    def wait(self, timeout_ms):
        log("wait", timeout_ms)
        return self.state()

    def state(self):
        return "ert_cmd_state.ERT_CMD_STATE_" + os.environ.get("FAKE_STATE", "COMPLETED")


class kernel:
    shared = "shared"

    def __init__(self, card, uuid, name, mode):
        assert (uuid, mode) == ("uuid", "shared")
        if os.environ.get("FAKE_REFUSES") == "open":
            raise RuntimeError("no compute unit of this name")
        log("kernel", name)
        self.name = name
        self.log = os.environ["FAKE_LOG"]

    def __del__(self):
        # It may go when the test that made it is over, or have been refused.
        if os.path.exists(getattr(self, "log", "")):
            log("kernel gone", path=self.log)

    def group_id(self, index):
        return 100 + index

    def __call__(self, *arguments):
        # As the binding: anything that is no buffer and no C int is dropped.
        seen = [
            "bo" if isinstance(argument, bo) else argument if -(2**31) <= argument < 2**31 else None
            for argument in arguments
        ]
        log("call", *seen)
        if compute is not None:
            compute(self.name, arguments)
            return run()
        if folder := os.environ.get("FAKE_SEEN"):
            for index, argument in enumerate(arguments):
                if isinstance(argument, bo):
                    with open(os.path.join(folder, f"{index}.bin"), "wb") as file:
                        file.write(argument.card)
        if results := os.environ.get("FAKE_RESULTS"):
            for index, path in json.loads(results).items():
                with open(path, "rb") as file:
                    arguments[int(index)].card[:] = file.read()
            return run()
        a, b, c = (np.frombuffer(buffer.card, dtype=np.uint32) for buffer in arguments[:3])
        np.frombuffer(arguments[2].card, dtype=np.uint32)[:] = (a + b)[: len(c)]
        return run()
