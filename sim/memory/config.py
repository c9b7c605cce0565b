"""The text file that configures the compiled models (`model.h`): one section a memory.

The file's path goes to the simulator in the environment variable `CONFIG_VARIABLE`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hw.board import Memory
from hw.board.memory_timing import DdrTiming, HbmTiming, HostTiming
from hw.errors import InputError, check_range

CONFIG_VARIABLE = "LOOM_MEMORY_CONFIG"


@dataclass(frozen=True, kw_only=True)
class FastTiming:
    """A latency and a bandwidth for each port and direction, nothing else.

    Behaviour: a read alone shows its first beat ``latency_ns`` after its address, rounded up to a clock edge.
    Beat ``k`` comes ``k`` beats' time later at the earliest.  A write is answered ``latency_ns`` after its
    last data.
    """

    latency_ns: float = 100.0  #: Address to first data, and last write data to response.
    bytes_per_second: float = 14.4e9  #: Of each port in each direction.
    port_bursts: int = 64  #: Bursts of each direction under way at once, for each port.


Timing = HbmTiming | DdrTiming | HostTiming | FastTiming

_MODELS: Mapping[type, str] = {HbmTiming: "hbm", DdrTiming: "ddr", HostTiming: "host", FastTiming: "fast"}


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """One memory as the models take it."""

    name: str  #: The section, and the parameter ``NAME`` of the SystemVerilog module.
    timing: Timing  #: Its type selects the model.
    #: The address space is that of the channels one after another. Host and fast memories are one space of
    #: ``channels * channel_bytes``.
    channels: int
    channel_bytes: int
    #: For each kernel port the channel beside whose AXI port it is attached.  The path through the switch
    #: depends on it, the addresses do not.
    port_channels: Sequence[int]
    kernel_clock_mhz: float  #: Clock of the kernel's ports.
    base_address: int = 0  #: Address of the first byte as the kernel sees it.
    max_burst_beats: int = 16  #: Longest burst a kernel port may issue; longer ones are reported.
    jitter_percent: int = 0  #: Share of edges at which a channel waits at random; 0 for none, at most 95.
    jitter_latency_cycles: int = 0  #: Most extra cycles before the answer to a burst.
    seed: int = 0  #: Of the random waits.
    #: Buffers in the host's memory, all together: large ones are slower there (`HostTiming`).
    working_set_bytes: int = 0
    #: Bytes that change when a burst is read, six numbers each: see `sim.run.adapter.Tamper`, with addresses.
    tampers: Sequence[tuple[int, int, int, int, int, int]] = ()
    trace: Path | None = None  #: File for every transfer at the ports: see `sim.memory.trace`.

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise InputError("name", self.name, "an identifier")
        check_range("channels", self.channels, 1, 64)
        if self.channel_bytes < 4096 or self.channel_bytes % 4096:
            raise InputError("channel_bytes", self.channel_bytes, "a multiple of 4096")
        if not 1 <= len(self.port_channels) <= 64:
            raise InputError("port_channels", list(self.port_channels), "one entry for each of 1 to 64 ports")
        for channel in self.port_channels:
            if not 0 <= channel < self.channels:
                raise InputError("port_channels", channel, f"a channel from 0 to {self.channels - 1}")
        if not self.kernel_clock_mhz >= 1:
            raise InputError("kernel_clock_mhz", self.kernel_clock_mhz, "at least 1")
        check_range("jitter_percent", self.jitter_percent, 0, 95)

    def section(self) -> str:
        """Return this memory's section of the parameter text."""
        values: dict[str, object] = {
            "model": _MODELS[type(self.timing)],
            "kernel_clock_khz": round(self.kernel_clock_mhz * 1000),
            "size_bytes": self.channels * self.channel_bytes,
        }
        for name in ("base_address", "max_burst_beats", "jitter_percent", "jitter_latency_cycles", "seed"):
            values[name] = getattr(self, name)
        values["tampers"] = tuple(number for tamper in self.tampers for number in tamper)
        values["trace"] = "" if self.trace is None else self.trace.absolute()
        if isinstance(self.timing, HbmTiming | DdrTiming):
            values["channels"] = self.channels
            values["channel_bytes"] = self.channel_bytes
            values["port_channels"] = tuple(self.port_channels)
        if isinstance(self.timing, HostTiming):
            values["working_set_bytes"] = self.working_set_bytes
        values |= asdict(self.timing)
        lines = [f"[{self.name}]"]
        for key, value in values.items():
            text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            lines.append(f"{key} = {text}")
        return "\n".join(lines) + "\n"


def parameter_text(configs: Iterable[MemoryConfig]) -> str:
    """Return the parameter text of several memories; their names must differ."""
    configs = list(configs)
    names = [config.name for config in configs]
    if len(set(names)) != len(names):
        raise InputError("name", names, "different for every memory")
    return "\n".join(config.section() for config in configs)


def memory_config(
    memory: Memory, port_channels: Sequence[int], *, clock_mhz: float, mode: str = "model", seed: int = 0
) -> MemoryConfig:
    """Configure the model of a board's memory, with the kernel's ports attached beside ``port_channels``.

    Modes: ``"model"`` has the memory's own timing.  ``"fast"`` has a fixed latency, and the ports' share of
    the memory's realistic bandwidth.  ``"jitter"`` adds random waits on every channel; ``seed`` draws them
    and their number.
    """
    timing: Timing = memory.timing
    waits, latency = 0, 0
    if mode != "model":
        timing = FastTiming(bytes_per_second=memory.channel_bytes_per_second)
    if mode == "jitter":
        waits, latency = (30, 50, 70)[seed % 3], 48
    elif mode not in ("model", "fast"):
        raise InputError("mode", mode, "'model', 'fast' or 'jitter'")
    return MemoryConfig(
        name=memory.name,
        timing=timing,
        channels=memory.channels,
        channel_bytes=memory.channel_bytes,
        port_channels=tuple(port_channels),
        kernel_clock_mhz=clock_mhz,
        max_burst_beats=memory.burst_beats,
        jitter_percent=waits,
        jitter_latency_cycles=latency,
        seed=seed,
    )


def model_sources() -> dict[str, str]:
    """Return the text of every source by file name: C++, and the SystemVerilog module ``loom_memory``."""
    paths = sorted(Path(__file__).resolve().parent.iterdir())
    return {path.name: path.read_text() for path in paths if path.suffix in (".cpp", ".h", ".sv")}
