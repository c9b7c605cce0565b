"""The calibration bench: traffic generators in RTL, a memory model behind them, and registers for cocotb."""

from pathlib import Path

from amaranth.back import verilog

from hw.lib.traffic import PROGRAM, RESULT, TrafficGenerator
from sim.calibration.program import PROGRAM_WORDS, RESULT_WORDS
from sim.host.template import filled
from sim.memory.config import model_sources

TOP = "loomwork_calibration"
#: Name of the memory in the bench.
MEMORY = "memory"
ID_BITS = 6
#: Ports of the bench that cocotb drives or reads.
VISIBLE = ("clk", "rst_n", "write", "port", "writes", "word", "value", "result", "go", "busy")

_GENERATOR = "traffic"
_MEMBERS = {
    "awvalid": 1, "awready": 1, "awaddr": 64, "awlen": 8, "awid": ID_BITS,
    "wvalid": 1, "wready": 1, "wdata": 0, "wstrb": 0, "wlast": 1,
    "bvalid": 1, "bready": 1, "bresp": 2, "bid": ID_BITS,
    "arvalid": 1, "arready": 1, "araddr": 64, "arlen": 8, "arid": ID_BITS,
    "rvalid": 1, "rready": 1, "rdata": 0, "rresp": 2, "rlast": 1, "rid": ID_BITS,
}  # fmt: skip


def bench_sources(*, ports: int, data_bits: int) -> dict[str, str]:
    """Return the sources by file name of a bench with ``ports`` generators, each on a port of the memory."""
    generator = verilog.convert(
        TrafficGenerator(data_width=data_bits, id_width=ID_BITS),
        name=_GENERATOR,
        emit_src=False,
        strip_internal_attrs=True,
    )
    widths = {
        name: width or (data_bits if name.endswith("data") else data_bits // 8)
        for name, width in _MEMBERS.items()
    }
    text = filled(
        Path(__file__).with_name("bench.sv.j2"),
        top=TOP,
        ports=ports,
        data_bits=data_bits,
        memory_name=MEMORY,
        generator=_GENERATOR,
        widths=widths,
        size=(data_bits // 8).bit_length() - 1,
        program_bits=PROGRAM.size,
        result_bits=RESULT.size,
        program_words=PROGRAM_WORDS,
        result_words=RESULT_WORDS,
    )
    return {"traffic.v": generator, "calibration.sv": text, **model_sources()}
