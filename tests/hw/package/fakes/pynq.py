"""Stands in for PYNQ: registers, buffers with addresses above 4 GiB, an overlay that computes c = a + b.

Every register write goes to the file named by FAKE_LOG.  FAKE_IPS names the kernel's instances; FAKE_HANGS
makes it never end, FAKE_BUSY never idle.  FAKE_SEEN names a folder for what memory holds at the call, by the
register's offset; FAKE_RESULTS files of what is written there instead of sums, by offset, in JSON.
FAKE_STATUS is what vadd's status reads as, else 0.  FAKE_OFFSET is how far into a page buffers begin,
FAKE_NOT why the bitstream cannot be loaded.
"""

import json
import os

import numpy as np

BUFFERS = {}


class Buffer(np.ndarray):
    """An array that the kernel sees only after `flush`, and the host only after `invalidate`."""

    def flush(self):
        self.card[:] = self

    def invalidate(self):
        self[:] = self.card

    def freebuffer(self):
        del BUFFERS[self.device_address]


def allocate(shape, dtype):
    if shape[0] > int(os.environ.get("FAKE_ROOM", shape[0])):
        raise RuntimeError("Failed to allocate memory")
    buffer = np.zeros(shape, dtype).view(Buffer)
    buffer.card = np.zeros(shape, dtype)
    buffer.device_address = 0x8_0000_0000 + 0x1_0000 * len(BUFFERS) + int(os.environ.get("FAKE_OFFSET", "0"))
    BUFFERS[buffer.device_address] = buffer
    return buffer


class Kernel:
    def __init__(self):
        self.words = {}
        self.done = 0

    def write(self, offset, value):
        assert isinstance(value, int)
        assert 0 <= value < 2**32
        with open(os.environ["FAKE_LOG"], "a") as file:
            file.write(json.dumps([offset, value]) + "\n")
        self.words[offset] = value
        if offset == 0 and value & 1:
            if folder := os.environ.get("FAKE_SEEN"):
                for at in self.words:
                    if (found := self.behind(at)) is not None:
                        found.tofile(os.path.join(folder, f"{at}.bin"))
            if results := os.environ.get("FAKE_RESULTS"):
                for at, path in json.loads(results).items():
                    self.behind(int(at))[:] = np.fromfile(path, np.uint8)
            else:
                a, b, c = (self.behind(at).view(np.uint32) for at in (0x10, 0x1C, 0x28))
                c[:] = a + b
            self.done = 0 if os.environ.get("FAKE_HANGS") else 2

    def behind(self, offset):
        buffer = BUFFERS.get(self.words[offset] | self.words.get(offset + 4, 0) << 32)
        return None if buffer is None else buffer.card

    def read(self, offset):
        if offset in (0x438, 0x43C):
            return int(os.environ.get("FAKE_STATUS", "0")) if offset == 0x438 else 0
        if offset:
            return 7 if offset & 4 else 0x1000 + offset
        state, self.done = self.done, 0
        return state | (0 if os.environ.get("FAKE_BUSY") else 4)


class Overlay:
    def __init__(self, path):
        assert path.endswith(".bit")
        if why := os.environ.get("FAKE_NOT"):
            raise OSError(why)
        self.ip_dict = {"other_0": {"type": "xilinx.com:ip:axi_gpio:2.0"}}
        for name in filter(None, os.environ.get("FAKE_IPS", "vadd_0").split(",")):
            self.ip_dict[name] = {"type": "loomwork:kernel:loomwork_vadd:1.0"}
            parent, *rest = name.split("/")
            setattr(self, parent, type("Hierarchy", (), {rest[0]: Kernel()}) if rest else Kernel())
