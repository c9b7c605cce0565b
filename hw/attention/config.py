"""Shape of the attention engine, and the widths that follow from it (``docs/attention.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hw.errors import InputError, check_field_types, check_power_of_two

#: Most keys of a head; widths of running output and running sum allow for it.
MAX_KEYS = 65536
#: Bits of a number of keys, 0 ... 65536, and of a key's index.
KEY_BITS = 17
#: Bits of a query's position among the keys, signed: it is negative where there are more queries than keys.
POSITION_BITS = 18
#: Bits of a logit t, and how many of them are fraction.
LOGIT_BITS = 24
LOGIT_FRACTION_BITS = 12
#: Bits of a whole log2 maximum M.
MAXIMUM_BITS = 13
#: Bits of a rescale amount; the largest one leaves zero of any O and l.
RESCALE_BITS = 6
#: Bits of the launch arguments: multiplier and shift of scores; slope; cap; fraction, multiplier and shift of
#: results.
MULTIPLIER_BITS = 17
SHIFT_BITS = 6
SLOPE_BITS = 26
CAP_BITS = 23
FRACTION_BITS = 4
OUTPUT_SHIFT_BITS = 7

#: Bits of the units that rows in memory are whole numbers of, and in which results are dealt out: unit n of a
#: row goes to port n mod W.
UNIT_BITS = 128
#: Query tiles whose results wait in the rows: four beats of 128 elements each fill no RAM that a LUT makes.
RESULT_BANKS = 4
#: Most keys that come a cycle to a job that decodes: with values, twice as many ports are what HBM has.
MOST_DECODE_STREAMS = 16
#: Most ports of queries where jobs decode: they give more than the part a cycle that rows take.
MOST_QUERY_PORTS = 4
#: What a result may be, and its bits.
OUTPUT_WIDTHS = {"int8": 8, "int16": 16, "bfloat16": 16}


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Shape of the attention engine; numbers of tokens and heads are launch arguments, not part of it."""

    rows: int = 32  #: R, query rows held by the arrays: 1 to 64.
    #: D, multipliers of each array in a row: a multiple of 16 from 16 to 128.  A key or value of up to D
    #: elements takes a cycle.
    lanes: int = 64
    #: F, most cycles a key or a value may take: 1 to 4.  Heads have up to ``folds * lanes`` elements.
    folds: int = 2
    tile_keys: int = 64  #: T, keys after which partial sums are merged: a power of two from 16 to 128.
    #: S, streams of keys and values, each with arrays of its own: a power of two from 1 to 16.
    streams: int = 1
    #: Memory ports that the keys (and again the values) of one stream are spread over: a power of two from 1
    #: to 16; P is this or, with ``decode``, `ports`.
    ports_per_stream: int = 2
    #: Ports that queries are spread over by units of 16 bytes: 1, 2 or 4, a divisor of D / 16; Q is this or,
    #: with ``decode``, `query_port_count`.
    query_ports: int = 1
    #: W, memory ports that results are spread over: a power of two from 1 to 4.  A pass of fewer cycles than
    #: its results have beats waits for them.
    result_ports: int = 1
    #: Bits of a beat of each port: a power of two from 128 to 1024, or 0 for those of the board's memory.
    port_bits: int = 0
    #: Lanes that the merge and the normalizer of a row take a cycle: a power of two up to ``lanes / 8``, and
    #: at least ``lanes / tile_keys`` so that a merge ends within a tile.
    merge_lanes: int = 2
    #: Entries, each a part of D lanes, of the cache that a stream has for keys, and again for values: a power
    #: of two from ``2 * tile_keys`` to 262,144, or 0 for no cache.
    cached_keys: int = 1024
    #: B: probabilities are in units of 2^-B.  8 lets two lanes of values share a multiplier.
    probability_bits: Literal[8, 12, 16, 20] = 20
    exp_segments: Literal[8, 16, 32] = 16  #: Straight lines that make up 2^-x on [0, 1).
    #: What results are: int16 with fraction bits, or int8 or bfloat16 with a multiplier.
    output: Literal["int8", "int16", "bfloat16"] = "int16"
    logit_cap: bool = False  #: Whether a launch may bend logits by ``cap * tanh(t / cap)``.
    #: ALiBi: a launch may name a slope for each head, by which logits fall with the distance of their key.
    alibi: bool = False
    paged: bool = False  #: Whether keys and values of a launch may lie in pages, which a table names.
    #: Whether jobs may decode, with keys and values for each pair of rows in every stream, so that up to 16
    #: keys come a cycle to two queries.  It counts where a shape has two streams or more of two rows or more,
    #: lanes that are a power of two, a cache, and no fewer such pairs than ports of results: `decodes` tells.
    #: There are as many ports then as such pairs, for keys and again for values, each as wide as a part, and
    #: up to four of them for queries, whatever ``ports_per_stream``, ``port_bits`` and ``query_ports`` say.
    decode: bool = False

    def __post_init__(self) -> None:
        check_field_types(self)
        if not 1 <= self.rows <= 64:
            raise InputError("rows", self.rows, "from 1 to 64")
        if not 16 <= self.lanes <= 128 or self.lanes % 16:
            raise InputError("lanes", self.lanes, "a multiple of 16 from 16 to 128")
        if not 1 <= self.folds <= 4:
            raise InputError("folds", self.folds, "from 1 to 4")
        check_power_of_two("tile_keys", self.tile_keys, 16, 128)
        check_power_of_two("streams", self.streams, 1, 16)
        check_power_of_two("ports_per_stream", self.ports_per_stream, 1, 16)
        if self.query_ports not in (1, 2, 4) or self.lanes % (16 * self.query_ports):
            raise InputError("query_ports", self.query_ports, "1, 2 or 4, a divisor of lanes / 16")
        check_power_of_two("result_ports", self.result_ports, 1, 4)
        check_power_of_two("port_bits", self.port_bits, 128, 1024, or_zero=True)
        fewest = 1 << (-(-self.lanes // self.tile_keys) - 1).bit_length()
        most = 1 << (self.lanes // 8).bit_length() - 1
        check_power_of_two("merge_lanes", self.merge_lanes, fewest, most)
        check_power_of_two("cached_keys", self.cached_keys, 2 * self.tile_keys, 4 * MAX_KEYS, or_zero=True)
        if self.probability_bits not in (8, 12, 16, 20):
            raise InputError("probability_bits", self.probability_bits, "8, 12, 16 or 20")
        if self.exp_segments not in (8, 16, 32):
            raise InputError("exp_segments", self.exp_segments, "8, 16 or 32")
        if self.output not in OUTPUT_WIDTHS:
            raise InputError("output", self.output, "int8, int16 or bfloat16")

    @property
    def decodes(self) -> bool:
        """Whether jobs may decode: ``decode`` says so, and the shape has what it takes."""
        return (
            self.decode
            and self.rows > 1
            and self.streams > 1
            and self.cached_keys > 0
            and not self.lanes & (self.lanes - 1)
            and self.result_ports <= self.streams * self._paired_ports
        )

    @property
    def _paired_ports(self) -> int:
        """Ports of a stream that each are a pair of rows' own, a power of two, where jobs decode."""
        return min(1 << max(0, (self.rows // 2).bit_length() - 1), MOST_DECODE_STREAMS // self.streams)

    @property
    def ports(self) -> int:
        """P, memory ports that the keys (and again the values) of one stream are spread over."""
        return self._paired_ports if self.decodes else self.ports_per_stream

    @property
    def max_head_dim(self) -> int:
        """Most elements of a query, key or value."""
        return self.folds * self.lanes

    @property
    def part_bits(self) -> int:
        """Bits of a part of a query, key or value: what the arrays take in a cycle."""
        return 8 * self.lanes

    @property
    def tile_span(self) -> int:
        """Keys of a head from one tile to the next: they are dealt out, and each stream has T of them."""
        return self.streams * self.tile_keys

    @property
    def stream_bits(self) -> int:
        """Bits of a key's index that say which stream has it: the lowest ones."""
        return self.streams.bit_length() - 1

    @property
    def query_port_count(self) -> int:
        """Q, ports that queries are spread over: with ``decode`` a power of two of those of values."""
        if not self.decodes:
            return self.query_ports
        return min(MOST_QUERY_PORTS, 1 << (self.decode_streams - 1).bit_length() - 1)

    @property
    def decode_streams(self) -> int:
        """Keys that come a cycle to a job that decodes: one for each pair of rows that has a port."""
        return self.streams * self.ports

    @property
    def decode_stream_bits(self) -> int:
        """Bits of a key's index that say which of these it is: the lowest ones."""
        return self.decode_streams.bit_length() - 1

    @property
    def index_bits(self) -> int:
        """Bits of a key's place in its tile."""
        return self.tile_keys.bit_length() - 1

    @property
    def logit_entries(self) -> int:
        """Logits that wait in each row: two tiles, and no fewer than the RAM that a LUT makes holds."""
        return max(64, 2 * self.tile_keys)

    @property
    def score_bits(self) -> int:
        """Bits of a raw score S, signed: of ``max_head_dim`` products of up to 2^14."""
        return (self.max_head_dim << 14).bit_length() + 1

    @property
    def probability_width(self) -> int:
        """Bits of a probability: it is 2^B at the most."""
        return self.probability_bits + 1

    @property
    def packs_values(self) -> bool:
        """Whether two lanes of values share a multiplier, which takes probabilities of 8 bits."""
        return self.probability_bits == 8

    @property
    def partial_bits(self) -> int:
        """Bits of a partial sum of one tile, signed: -2^7 times T times 2^B must fit."""
        return 8 + self.probability_bits + self.index_bits

    @property
    def partial_sum_bits(self) -> int:
        """Bits of a tile's sum of probabilities, unsigned: T times 2^B must fit."""
        return self.probability_width + self.index_bits

    @property
    def output_bits(self) -> int:
        """Bits of the running output O, signed: -2^7 times `MAX_KEYS` times 2^B must fit."""
        return 24 + self.probability_bits

    @property
    def sum_bits(self) -> int:
        """Bits of the running sum l, unsigned: `MAX_KEYS` times 2^B must fit."""
        return 17 + self.probability_bits

    @property
    def final_banks(self) -> int:
        """Banks of final outputs a row and stream has: two where streams wait for each other."""
        return 1 if self.streams == 1 else 2

    @property
    def part_steps(self) -> int:
        """Cycles in which the merge (and the normalizer) passes over a part of D lanes."""
        return self.lanes // self.merge_lanes

    @property
    def merge_steps(self) -> int:
        """Cycles for all F parts."""
        return self.folds * self.part_steps

    def port_width(self, board_bits: int) -> int:
        """Bits of a beat of each memory port, where those of the board's memory have ``board_bits``."""
        return self.part_bits if self.decodes else self.port_bits or board_bits

    @property
    def result_bits(self) -> int:
        """Bits of one result."""
        return OUTPUT_WIDTHS[self.output]

    def query_units(self, query_size: int) -> int:
        """Units of `UNIT_BITS` that a query of ``query_size`` elements takes at each of its ports or, with
        ``decode``, at all of them together: whole parts.
        """
        if self.decodes:
            return self.key_units(query_size)
        return -(-query_size * 8 // (UNIT_BITS * self.query_ports))

    def query_bytes(self, query_size: int) -> int:
        """Bytes that a query of ``query_size`` elements takes at all of its ports together."""
        return self.query_units(query_size) * UNIT_BITS // 8 * (1 if self.decodes else self.query_ports)

    def key_units(self, size: int) -> int:
        """Units of `UNIT_BITS` that a key or value of ``size`` elements takes at its port: with ``decode``
        whole parts, which their readers then need not cut.
        """
        part = self.part_bits if self.decodes else UNIT_BITS
        return -(-size * 8 // part) * (part // UNIT_BITS)

    def result_units(self, value_size: int) -> int:
        """Units of `UNIT_BITS` that one row of ``value_size`` results takes at each of its ports."""
        return -(-value_size * self.result_bits // (UNIT_BITS * self.result_ports))

    def result_slice(self, data_width: int) -> int:
        """Bits of results that leave the rows at once for each port of ``data_width`` bits.

        With ``decode`` as many as other kernels have on HBM: its ports are faster than their channels.
        """
        return min(data_width, 256) if self.decodes else data_width

    def output_beats(self, beat_width: int) -> int:
        """Beats of ``beat_width`` bits that hold one row of results of `max_head_dim` elements."""
        return -(-self.result_bits * self.max_head_dim // beat_width)
