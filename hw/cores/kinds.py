"""The cores that stand alone: name, configuration, and the component."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amaranth.lib import wiring
from pydantic import TypeAdapter

from hw.attention.config import AttentionConfig
from hw.attention.core.core import AttentionCore
from hw.conv.config import ConvConfig
from hw.conv.core.core import ConvCore
from hw.cores.dma import ReadConfig, WriteConfig
from hw.edge import read_document, validate
from hw.errors import InputError, check_one_of, check_power_of_two
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.place import Placer

#: Bits of a beat where ``port_bits`` is 0: those of an HBM port.
BEAT_BITS = 256


@dataclass(frozen=True, kw_only=True)
class CoreKind:
    """A core that stands alone."""

    name: str
    summary: str
    config_type: type[Any]
    make: Callable[[Any, Placer], wiring.Component]  #: Makes the component.
    #: Fields of the configuration that are the engine's, not the core's, and their values here.
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the configuration's fields that the core has."""
        names = (each.name for each in dataclasses.fields(self.config_type))
        return tuple(name for name in names if name not in self.fixed)

    def load(self, path: Path | str | None) -> Any:
        """Return the configuration of a YAML file; fields that it leaves out have the default of the class.

        Raises `InputError` with file and line for a field that the core does not have, a wrong type, or a
        value out of range.
        """
        if path is None:
            return self.config_type(**self.fixed)
        document = read_document(Path(path))
        for key in document.data:
            if key not in self.fields:
                legal = "one of " + ", ".join(self.fields)
                raise InputError(f"field of the core {self.name}", key, legal, where=document.where((key,)))
        completed = dataclasses.replace(document, data={**self.fixed, **document.data})
        return validate(completed, TypeAdapter(self.config_type))

    def plain(self, config: Any) -> dict[str, Any]:
        """Return the core's fields of a configuration as plain values."""
        return {name: getattr(config, name) for name in self.fields}


def find_core(name: str) -> CoreKind:
    """Return the core called ``name``.

    Raises `InputError` with the list of cores for another name.
    """
    check_one_of("core", name, CORES)
    return CORES[name]


def _attention(config: AttentionConfig, placer: Placer) -> AttentionCore:
    if config.decode and not config.decodes:
        legal = "false unless rows and streams are at least 2 and lanes a power of two"
        raise InputError("decode", True, legal)
    beat = config.port_bits or BEAT_BITS
    check_power_of_two("port_bits", beat, config.result_bits * config.merge_lanes)
    return AttentionCore(config, placer, beat_width=beat)


def _conv(config: ConvConfig, placer: Placer) -> ConvCore:
    return ConvCore(config, placer, beat_bits=config.port_bits or BEAT_BITS)


def _read(config: ReadConfig, placer: Placer) -> ReadDMA:
    return ReadDMA(**dataclasses.asdict(config))


def _write(config: WriteConfig, placer: Placer) -> WriteDMA:
    return WriteDMA(**dataclasses.asdict(config))


#: By name.
CORES: Mapping[str, CoreKind] = {
    kind.name: kind
    for kind in (
        CoreKind(
            name="attention",
            summary="softmax(q k^T) v of query tiles: commands, queries, keys and values in, results out",
            config_type=AttentionConfig,
            make=_attention,
            fixed={
                "ports_per_stream": 1,
                "query_ports": 1,
                "result_ports": 1,
                "cached_keys": 1024,
                "paged": False,
            },
        ),
        CoreKind(
            name="conv",
            summary="depthwise and pointwise convolution: commands, maps and weights in, maps out",
            config_type=ConvConfig,
            make=_conv,
            fixed={"ports": 1},
        ),
        CoreKind(
            name="read-dma",
            summary="byte ranges of an AXI4 memory as a stream of packed words",
            config_type=ReadConfig,
            make=_read,
        ),
        CoreKind(
            name="write-dma",
            summary="a stream of packed words to byte ranges of an AXI4 memory",
            config_type=WriteConfig,
            make=_write,
        ),
    )
}
