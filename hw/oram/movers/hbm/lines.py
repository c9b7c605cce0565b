"""Addresses of lines in HBM, and kinds of reads."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import data
from amaranth.utils import exact_log2

from hw.errors import InputError, check_power_of_two
from hw.lib import axi
from hw.oram.core.layouts import ADDRESS_BITS, beat_write_layout

#: Bytes of two beats that lines may have swapped.
PAIR_BYTES = 64


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A table of equal lines, line i behind port ``i % ports``, at ``(i // ports) * line_bytes`` from the
    port's base.
    """

    ports: int  #: AXI ports: a power of two.
    port_bytes: int  #: Bytes of a beat: 16, 32 or 64.
    line_bytes: int  #: A multiple of 64.
    line_bits: int  #: Bits of a line's number.
    slice_lines: int = 0  #: Lines behind each port, or 0 for all that the number can tell.
    head: int = 0  #: First beat of an empty line; its other bytes are zeros.
    #: Lines of odd number behind their port have the beats of every 64 bytes swapped. HBM's address map takes
    #: the banks of a pair in turn, so first beats of lines lie in both.
    swapped: bool = False

    def __post_init__(self) -> None:
        check_power_of_two("ports", self.ports, 1, 32)
        check_power_of_two("port_bytes", self.port_bytes, 16, 64)
        if self.line_bytes < 64 or self.line_bytes % 64:
            raise InputError("line_bytes", self.line_bytes, "a multiple of 64")
        if self.line_bits <= self.port_bits:
            raise InputError("line_bits", self.line_bits, f"more than {self.port_bits}, those of the ports")
        most = 1 << self.line_bits - self.port_bits
        if not 0 <= self.slice_lines <= most:
            raise InputError("slice_lines", self.slice_lines, f"at most {most}, as the bits of a line")
        if self.swapped and self.port_bytes != PAIR_BYTES // 2:
            raise InputError("port_bytes", self.port_bytes, f"{PAIR_BYTES // 2} for swapped lines")

    @property
    def port_bits(self) -> int:
        """Bits of a line's number that select its port: the lowest."""
        return self.ports.bit_length() - 1

    @property
    def beats(self) -> int:
        """Beats of a line."""
        return self.line_bytes // self.port_bytes

    @property
    def slice_beats(self) -> int:
        """Beats of the lines behind a port."""
        return (self.slice_lines or 1 << self.line_bits - self.port_bits) * self.beats

    @property
    def beat_bits(self) -> int:
        """Bits of the number of a beat behind its port."""
        return self.offset_bits - exact_log2(self.port_bytes)

    @property
    def beat_write(self) -> data.StructLayout:
        """Return a written beat: see `beat_write_layout`."""
        return beat_write_layout(
            line_bits=self.line_bits, port_bytes=self.port_bytes, line_bytes=self.line_bytes
        )

    def first_beat(self, line: Value) -> Value:
        """Return the byte offset of the line's first beat from the base of its port."""
        place = line[self.port_bits :]
        if not self.swapped:
            return place * self.line_bytes
        odd, pairs = place[0], place * (self.line_bytes // PAIR_BYTES)
        return Cat(Const(0, exact_log2(self.port_bytes)), odd, pairs)

    @property
    def offset_bits(self) -> int:
        """Bits of a byte offset from the base of its port, up to the end of the last line."""
        return ((self.line_bytes << self.line_bits - self.port_bits) - 1).bit_length()


@dataclass(frozen=True, kw_only=True)
class LineRead:
    """A kind of read."""

    name: str  #: Of the streams: requests are ``<name>_request``, words are ``<name>``.
    length: int  #: Bytes read from the beginning of a line.
    #: Bytes of a word: a power of two from 16 to 128 that divides the length.
    word_bytes: int
    #: Bytes of the head at the beginning of the line, an extra stream ``<name>_head`` that is valid on
    #: arrival: a word of 16 to 128 bytes. 0 for none.
    head_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("word_bytes", "head_bytes"):
            if getattr(self, name) or name == "word_bytes":
                check_power_of_two(name, getattr(self, name), 16, 128)
        if self.length < 1 or self.length % self.word_bytes:
            raise InputError("length", self.length, f"a multiple of word_bytes ({self.word_bytes})")


@dataclass(frozen=True, kw_only=True)
class Words:
    """A stream of read data: ``count`` words of ``word_bytes`` from the beginning of every line."""

    name: str
    read: int  #: Number of its kind of read.
    word_bytes: int
    count: int

    def beats(self, port_bytes: int) -> int:
        """Return the beats of a word: one if a beat has several words."""
        return max(1, self.word_bytes // port_bytes)


def check_reads(lines: Lines, reads: tuple[LineRead, ...]) -> None:
    """Refuse reads that do not fit the lines or the beat."""
    if len({read.name for read in reads}) != len(reads):
        raise InputError("reads", [read.name for read in reads], "of different names")
    for read in reads:
        if read.length > lines.line_bytes:
            raise InputError("length", read.length, f"at most line_bytes ({lines.line_bytes})")
        if read.word_bytes < lines.port_bytes and read.length > read.word_bytes:
            raise InputError("word_bytes", read.word_bytes, "at least a beat where a line has several words")
        if lines.swapped and read.length > lines.port_bytes and read.word_bytes != PAIR_BYTES:
            raise InputError("word_bytes", read.word_bytes, f"{PAIR_BYTES} where lines are swapped")
        if lines.swapped and read.head_bytes > lines.port_bytes:
            raise InputError("head_bytes", read.head_bytes, "at most a beat where lines are swapped")


def words_of(reads: tuple[LineRead, ...]) -> tuple[Words, ...]:
    """Return the streams of read data, in order."""
    streams = []
    for index, read in enumerate(reads):
        count = read.length // read.word_bytes
        streams.append(Words(name=read.name, read=index, word_bytes=read.word_bytes, count=count))
        if read.head_bytes:
            head = Words(name=f"{read.name}_head", read=index, word_bytes=read.head_bytes, count=1)
            streams.append(head)
    return tuple(streams)


def read_signature(lines: Lines, reads: tuple[LineRead, ...]) -> axi.ReadSignature:
    """Return the port of a reader: its AXI identifiers are the numbers of the kinds."""
    bits = max(1, (len(reads) - 1).bit_length())
    return axi.ReadSignature(data_width=8 * lines.port_bytes, addr_width=ADDRESS_BITS, id_width=bits)


def write_signature(lines: Lines) -> axi.WriteSignature:
    """Return the port of a writer."""
    return axi.WriteSignature(data_width=8 * lines.port_bytes, addr_width=ADDRESS_BITS)
