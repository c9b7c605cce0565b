"""Configuration of the network kernel."""

from __future__ import annotations

from dataclasses import dataclass

from hw.errors import InputError, check_field_types, check_power_of_two, check_range
from hw.lib.memory import RamStyle, check_ram_style
from hw.network.attention.config import AttentionUnitConfig
from hw.network.matrix.config import MatrixConfig, weight_port_counts
from hw.network.scratchpad.shape import GranuleShape
from hw.network.vector.config import VectorConfig

#: Bytes of a word of the scratchpad.
WORD_BYTES = 64
#: Most bytes of the scratchpad.
MOST_BYTES = 8 << 20


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Configuration of the network kernel.

    >>> config = NetworkConfig()
    >>> config.shape.bytes >> 20, config.matrix.packet_bits
    (4, 2048)
    """

    scratchpad_bytes: int = 4 << 20  #: A power of two.
    banks: int = 16  #: Banks of the scratchpad, a power of two from 2 to 32.
    memory: RamStyle = "ultra"  #: Kind of RAM of the scratchpad.
    columns: int = 64  #: Columns of the matrix array, a power of two from 16 to 64.
    weight_ports: int = 8  #: Memory ports of weights.
    port_bytes: int = 32  #: Bytes of a word of a memory port.
    lanes: int = 64  #: Lanes of the vector unit, a power of two from 16 to 64.
    max_steps: int = 1024  #: Most commands of a program.
    max_transfers: int = 1024  #: Most transfers of one direction.
    max_region_bytes: int = 1 << 28  #: Most bytes of a program's region of the memory.
    max_taps: int = 4096  #: Rows of the matrix unit's tap table.
    vector_taps: int = 512  #: Rows of windows of the vector unit.
    scales: int = 512  #: Factors of means and products.
    tables: int = 64  #: Tables of 256 bytes.
    exponentials: int = 2  #: Tables of 256 exponentials.
    pixels: int = 512  #: Tokens whose statistics the vector unit keeps.
    channels: int = 512  #: Rows of factors of LayerNorms' channels, a word each.
    attention_rows: int = 0  #: Queries that the attention unit works on at once; 0 without the unit.
    attention_tokens: int = 512  #: Most queries, and most keys, of a command of attention: a power of two.

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("banks", self.banks, 2, 32)
        check_power_of_two("scratchpad_bytes", self.scratchpad_bytes, self.banks**2 * WORD_BYTES, MOST_BYTES)
        check_ram_style(self.memory)
        check_power_of_two("columns", self.columns, 16, 64)
        check_power_of_two("port_bytes", self.port_bytes, 16, WORD_BYTES)
        check_power_of_two("max_taps", self.max_taps, 512, 1 << 16)
        check_range("max_steps", self.max_steps, 1, (1 << 16) - 1)
        check_range("max_transfers", self.max_transfers, 1, (1 << 16) - 1)
        check_range("attention_rows", self.attention_rows, 0)
        check_range("max_region_bytes", self.max_region_bytes, WORD_BYTES, WORD_BYTES << 32)
        if self.max_region_bytes % WORD_BYTES:
            raise InputError("max_region_bytes", self.max_region_bytes, f"a multiple of {WORD_BYTES}")
        widths = weight_port_counts(columns=self.columns, port_bits=8 * self.port_bytes)
        if self.weight_ports not in widths:
            legal = f"{' or '.join(map(str, widths))} of {self.port_bytes} bytes for {self.columns} columns"
            raise InputError("weight_ports", self.weight_ports, legal)
        # The parts check their own fields.
        _ = self.shape, self.matrix, self.vector, self.attention_rows and self.attention

    @property
    def shape(self) -> GranuleShape:
        """Shape of the scratchpad."""
        rows = self.scratchpad_bytes // (self.banks * WORD_BYTES)
        return GranuleShape(banks=self.banks, rows=rows, memory=self.memory)

    @property
    def matrix(self) -> MatrixConfig:
        """Shape of the matrix unit."""
        return MatrixConfig(
            columns=self.columns,
            ports=self.weight_ports,
            port_bits=8 * self.port_bytes,
            tables=self.tables,
        )

    @property
    def vector(self) -> VectorConfig:
        """Shape of the vector unit."""
        return VectorConfig(
            shape=self.shape,
            lanes=self.lanes,
            taps=self.vector_taps,
            scales=self.scales,
            tables=self.tables,
            exponentials=self.exponentials,
            pixels=self.pixels,
            channels=self.channels,
        )

    @property
    def attention(self) -> AttentionUnitConfig:
        """Shape of the attention unit, in a kernel that has one."""
        return AttentionUnitConfig(shape=self.shape, rows=self.attention_rows, tokens=self.attention_tokens)
