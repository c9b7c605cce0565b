"""The bus trace as text, and bytes of the pages in it."""

import numpy as np

from sim.engines.oram.bus import page_bytes
from sim.memory.trace import TRANSFER, Channel, write_bus_trace


def test_accesses_and_their_bytes(tmp_path):
    transfers = [
        (10, 0x1000, 256, 0, Channel.AR, 0),
        (20, 0x1000, 64, 0, Channel.R, 0),
        (30, 0x1000, 256, 0, Channel.AW, 0),
        (30, 0x1000, 64, 0, Channel.W, 0),
        (31, 0x8000, 64, 1, Channel.AW, 0),
        (40, 0x1000, 0, 0, Channel.B, 0),
        (41, 0x1100, 256, 0, Channel.AR, 0),
    ]
    trace = np.array(transfers, TRANSFER)
    write_bus_trace(tmp_path / "bus.csv", trace, ["host0", "host1"])
    assert (tmp_path / "bus.csv").read_text().splitlines() == [
        "cycle,port,direction,address,bytes",
        "10,host0,read,0x1000,256",
        "30,host0,write,0x1000,256",
        "31,host1,write,0x8000,64",
        "41,host0,read,0x1100,256",
    ]
    assert page_bytes(trace, range(0x1000, 0x2000)) == {"read": 512, "write": 256}
    assert page_bytes(trace, range(0x1000, 0x1100)) == {"read": 256, "write": 256}
