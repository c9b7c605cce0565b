"""Shape of the attention engine, and the widths that follow from it (``docs/attention-specification.md``)."""

from dataclasses import dataclass
from typing import Literal

from hw.errors import InputError, check_field_types, check_power_of_two, check_range

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
#: Bits of a rescale amount; the largest one makes any O and l zero.
RESCALE_BITS = 6
#: Bits of the launch arguments: multiplier and shift of scores; slope; cap; fraction, multiplier and shift of
#: results.
MULTIPLIER_BITS = 17
SHIFT_BITS = 6
SLOPE_BITS = 26
CAP_BITS = 23
FRACTION_BITS = 4
OUTPUT_SHIFT_BITS = 7

#: Bits of the units of rows in memory.  Results are dealt by units: unit n of a row is at port n mod W.
UNIT_BITS = 128
#: Query tiles whose results are buffered in the rows: four beats of 128 elements each do not fill the RAM of
#: a LUT.
RESULT_BANKS = 4
#: Most keys a cycle in a job that decodes: keys and values then use all channels of HBM.
MOST_DECODE_STREAMS = 16
#: Most ports of queries where jobs decode: rows take one part a cycle.
MOST_QUERY_PORTS = 4
#: Formats of results, and their bits.
OUTPUT_WIDTHS = {"int8": 8, "int16": 16, "bfloat16": 16}


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Shape of the attention engine; numbers of tokens and heads are launch arguments, not part of it."""

    rows: int = 32  #: R, query rows held by the arrays: 1 to 64.
    #: D, multipliers of each array in a row: a multiple of 16 from 16 to 128.  A key or value of up to D
    #: elements takes a cycle.
    lanes: int = 64
    #: F, most cycles of a key or a value: 1 to 4.  Heads have up to ``folds * lanes`` elements.
    folds: int = 2
    tile_keys: int = 64  #: T, keys after which partial sums are merged: a power of two from 16 to 128.
    #: S, streams of keys and values, each with arrays of its own: a power of two from 1 to 16.
    streams: int = 1
    #: Memory ports for the keys, and again for the values, of one stream: a power of two from 1 to 16. P is
    #: this or, with ``decode``, `ports`.
    ports_per_stream: int = 2
    #: Ports of queries, which are dealt in units of 16 bytes: 1, 2 or 4, a divisor of D / 16; Q is this or,
    #: with ``decode``, `query_port_count`.
    query_ports: int = 1
    #: W, memory ports of results: a power of two from 1 to 4.  A pass with fewer cycles than beats of results
    #: at a port stalls.
    result_ports: int = 1
    #: Bits of a beat of each port: a power of two from 128 to 1024, or 0 for those of the board's memory.
    port_bits: int = 0
    #: Lanes a cycle of the merge and of the normalizer of a row: a power of two, at most ``lanes / 8``. It is
    #: at least ``lanes / tile_keys``, so that a merge ends within a tile.
    merge_lanes: int = 2
    #: Entries of a stream's cache of keys, and of its cache of values, each a part of D lanes. A power of two
    #: from ``2 * tile_keys`` to 262,144, or 0 for no cache.
    cached_keys: int = 1024
    #: B: probabilities are in units of 2^-B.  With 8 two lanes of values share a multiplier.
    probability_bits: Literal[8, 12, 16, 20] = 20
    exp_segments: Literal[8, 16, 32] = 16  #: Line segments of 2^-x on [0, 1).
    #: Format of results: int16 with fraction bits, or int8 or bfloat16 with a multiplier.
    output: Literal["int8", "int16", "bfloat16"] = "int16"
    logit_cap: bool = False  #: Whether a launch may cap logits: ``cap * tanh(t / cap)``.
    #: ALiBi: whether heads may have slopes, by which logits fall with the distance of their key.
    alibi: bool = False
    paged: bool = False  #: Whether keys and values of a launch may lie in pages of a table.
    #: Whether jobs may decode. Each pair of rows in each stream then has keys and values of its own, up to 16
    #: keys a cycle for two queries.  This requires two or more streams, two or more rows, lanes that are a
    #: power of two, and a cache. There must be at least as many such pairs as ports of results (`decodes`).
    #: Each pair then has a port for keys and one for values, each as wide as a part. Queries have up to four
    #: ports. ``ports_per_stream``, ``port_bits`` and ``query_ports`` do not apply.
    decode: bool = False

    def __post_init__(self) -> None:
        check_field_types(self)
        check_range("rows", self.rows, 1, 64)
        if not 16 <= self.lanes <= 128 or self.lanes % 16:
            raise InputError("lanes", self.lanes, "a multiple of 16 from 16 to 128")
        check_range("folds", self.folds, 1, 4)
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
        """Whether jobs may decode: ``decode`` is set, and the shape supports it."""
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
        """Ports of a stream, one for each pair of rows, a power of two, where jobs decode."""
        return min(1 << max(0, (self.rows // 2).bit_length() - 1), MOST_DECODE_STREAMS // self.streams)

    @property
    def ports(self) -> int:
        """P, memory ports for the keys, and again for the values, of one stream."""
        return self._paired_ports if self.decodes else self.ports_per_stream

    @property
    def max_head_dim(self) -> int:
        """Most elements of a query, key or value."""
        return self.folds * self.lanes

    @property
    def part_bits(self) -> int:
        """Bits of a part of a query, key or value: the input of the arrays in a cycle."""
        return 8 * self.lanes

    @property
    def tile_span(self) -> int:
        """Keys of a head in a tile: T in each stream."""
        return self.streams * self.tile_keys

    @property
    def stream_bits(self) -> int:
        """Lowest bits of a key's index, which select its stream."""
        return self.streams.bit_length() - 1

    @property
    def query_port_count(self) -> int:
        """Q, ports of queries: with ``decode`` a power of two of the ports of values."""
        if not self.decodes:
            return self.query_ports
        return min(MOST_QUERY_PORTS, 1 << (self.decode_streams - 1).bit_length() - 1)

    @property
    def decode_streams(self) -> int:
        """Keys a cycle in a job that decodes: one for each pair of rows with a port."""
        return self.streams * self.ports

    @property
    def decode_stream_bits(self) -> int:
        """Lowest bits of a key's index, which select its stream in a job that decodes."""
        return self.decode_streams.bit_length() - 1

    @property
    def index_bits(self) -> int:
        """Bits of a key's place in its tile."""
        return self.tile_keys.bit_length() - 1

    @property
    def logit_entries(self) -> int:
        """Logits buffered in each row: two tiles, and at least the RAM of a LUT."""
        return max(64, 2 * self.tile_keys)

    @property
    def score_bits(self) -> int:
        """Bits of a raw score S, signed: of ``max_head_dim`` products of up to 2^14."""
        return (self.max_head_dim << 14).bit_length() + 1

    @property
    def probability_width(self) -> int:
        """Bits of a probability, which is at most 2^B."""
        return self.probability_bits + 1

    @property
    def packs_values(self) -> bool:
        """Whether two lanes of values share a multiplier, which requires probabilities of 8 bits."""
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
        """Banks of final outputs of a row in a stream: two where streams wait for each other."""
        return 1 if self.streams == 1 else 2

    @property
    def part_steps(self) -> int:
        """Cycles of the merge, and of the normalizer, for a part of D lanes."""
        return self.lanes // self.merge_lanes

    @property
    def merge_steps(self) -> int:
        """Cycles of these for all F parts."""
        return self.folds * self.part_steps

    def port_width(self, board_bits: int) -> int:
        """Bits of a beat of each memory port, on a board whose memory has ``board_bits``."""
        return self.part_bits if self.decodes else self.port_bits or board_bits

    @property
    def result_bits(self) -> int:
        """Bits of one result."""
        return OUTPUT_WIDTHS[self.output]

    def query_units(self, query_size: int) -> int:
        """Units of `UNIT_BITS` of a query at each of its ports; with ``decode`` at all of them, in whole
        parts.
        """
        if self.decodes:
            return self.key_units(query_size)
        return -(-query_size * 8 // (UNIT_BITS * self.query_ports))

    def query_bytes(self, query_size: int) -> int:
        """Bytes of a query of ``query_size`` elements at all of its ports together."""
        return self.query_units(query_size) * UNIT_BITS // 8 * (1 if self.decodes else self.query_ports)

    def key_units(self, size: int) -> int:
        """Units of `UNIT_BITS` of a key or value at its port; with ``decode`` whole parts, which need no
        cutter.
        """
        part = self.part_bits if self.decodes else UNIT_BITS
        return -(-size * 8 // part) * (part // UNIT_BITS)

    def result_units(self, value_size: int) -> int:
        """Units of `UNIT_BITS` of a row of ``value_size`` results at each of its ports."""
        return -(-value_size * self.result_bits // (UNIT_BITS * self.result_ports))

    def result_slice(self, data_width: int) -> int:
        """Bits of results a cycle for each port of ``data_width`` bits.

        With ``decode`` as many as other kernels have on HBM, since the ports are faster than their channels.
        """
        return min(data_width, 256) if self.decodes else data_width

    def output_beats(self, beat_width: int) -> int:
        """Beats of ``beat_width`` bits for one row of results of `max_head_dim` elements."""
        return -(-self.result_bits * self.max_head_dim // beat_width)
