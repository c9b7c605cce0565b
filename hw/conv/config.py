"""Shape of the convolution engine, and the widths derived from it (``docs/conv-specification.md``)."""

from dataclasses import dataclass
from typing import Literal

from hw.errors import InputError, check_field_types, check_power_of_two, check_range

#: Longest side of a kernel, and most taps: 7 x 7.
MAX_KERNEL = 7
MAX_TAPS = MAX_KERNEL * MAX_KERNEL
#: Bits of a number of rows or columns of a map, 1 ... 4,095; of a coordinate, which may lie outside the map.
SIDE_BITS = 12
COORDINATE_BITS = 18
#: Bits of an offset, signed, fraction included; of a mask, in units of 1/256.
OFFSET_BITS = 16
MASK_BITS = 8
#: Bits of the number of words of a pixel, 1 ... 128.
WORDS_BITS = 8
#: Bits of a scale's multiplier and shift, and of the term added after the shift.
MULTIPLIER_BITS = 16
SHIFT_BITS = 6
POST_BITS = 16
#: Bits of the term added before the scale.
BIAS_BITS = 48
#: Bits of the sum of a depthwise layer, signed.  49 taps take at most 47: each is a sample of up to 25 bits
#: times a weight of 8 bits and a mask of 8 bits.
TAP_SUM_BITS = 48
#: Most words of a pixel in a depthwise layer: rows of the parameter RAMs.
TAP_LAYER_WORDS = 64
#: Most digits of a sample that goes to the pointwise array.
MAX_DIGITS = 4
#: Bits of the sum of products over the input channels, which are at most 2^14.
_CHANNEL_BITS = 14


@dataclass(frozen=True, kw_only=True)
class ConvConfig:
    """Shape of the convolution engine; sizes of maps and kernels are launch arguments instead."""

    #: L, channels of a word: a power of two from 8 to 128.  One word a cycle enters or leaves.
    lanes: int = 64
    #: T, taps of a word that are sampled and multiplied a cycle: 1, or 2 with a second copy of the line
    #: buffer.
    taps: Literal[1, 2] = 2
    #: Whether plain depthwise 3 x 3 layers have nine multipliers a lane and take a cycle a word.
    strip: bool = True
    #: Words of each delay line of a strip: most words of dilation times a pixel.  A power of two from 16 to
    #: 512.
    strip_words: int = 64
    #: G, address generators: slices of L / G lanes have offsets of their own.  A power of two up to L / 8.
    generators: int = 1
    #: Words of each of the four banks of the line buffer: a power of two from 64 to 65,536.
    bank_words: int = 4096
    memory: Literal["ultra", "block"] = "ultra"  #: RAMs of the line buffer: "ultra" or "block".
    fraction_bits: int = 5  #: F, bits of an offset behind the point: 0 to 8.
    mask: bool = True  #: Whether samples may have masks (deformable convolution v2).
    #: Words of weights, two numbers each, of the 1 x 1 convolution that computes offsets on chip.  A power of
    #: two from 16 to 4,096, or 0 where offsets are always read.
    dot_words: int = 256
    #: Entries of the offset store, T taps each: a power of two from 64 to 65,536.
    offset_entries: int = 1024
    #: Words of weights, T taps each, of a depthwise layer; the next layer's load meanwhile.  A power of two
    #: from 64 to 4,096.
    tap_words: int = 512
    #: PA, input channels of the pointwise array: a power of two from 8 to L.
    inputs: int = 64
    outputs: int = 64  #: PE, output channels of the pointwise array: a power of two from 8 to L.
    #: Bits of a weight: 8, or 4 for -7 ... 7, of which three share a multiplier.
    weight_bits: Literal[4, 8] = 8
    #: Most pixels swept while the pointwise array keeps its weights: a power of two from 16 to 512.
    block_pixels: int = 256
    #: Words of each half of the buffers before and after the pointwise array: a power of two from 64 to
    #: 65,536.
    block_words: int = 8192
    #: Words of each half of the buffer of the map shuffled into the output: a power of two from 64 to 65,536.
    bypass_words: int = 1024
    #: Whether samples can go to the pointwise array, for kernels larger than 1 x 1 that are not depthwise.
    samples: bool = True
    ports: int = 4  #: P, memory ports that maps are spread over: a power of two up to L / 8.
    #: Bits of a beat of each port: a power of two from 128 to 512, or 0 for those of the board's memory.
    port_bits: int = 0
    #: Words of each neighbour, for each of T taps, that are fetched from memory for samples outside the line
    #: buffer: at least the words times the steps of a pixel.  A power of two from 64 to 4,096, or 0 for an
    #: engine that cannot gather.
    gather_words: int = 512

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("lanes", self.lanes, 8, 128)
        if self.taps not in (1, 2):
            raise InputError("taps", self.taps, "1 or 2")
        check_power_of_two("strip_words", self.strip_words, 16, 512)
        check_power_of_two("generators", self.generators, 1, self.lanes // 8)
        check_power_of_two("bank_words", self.bank_words, 64, 65536)
        if self.memory not in ("ultra", "block"):
            raise InputError("memory", self.memory, "ultra or block")
        check_range("fraction_bits", self.fraction_bits, 0, 8)
        check_power_of_two("offset_entries", self.offset_entries, 64, 65536)
        check_power_of_two("dot_words", self.dot_words, 16, 4096, or_zero=True)
        check_power_of_two("tap_words", self.tap_words, 64, 4096)
        check_power_of_two("inputs", self.inputs, 8, self.lanes)
        check_power_of_two("outputs", self.outputs, 8, self.lanes)
        if self.weight_bits not in (4, 8):
            raise InputError("weight_bits", self.weight_bits, "4 or 8")
        check_power_of_two("block_pixels", self.block_pixels, 16, 512)
        check_power_of_two("block_words", self.block_words, 64, 65536)
        check_power_of_two("bypass_words", self.bypass_words, 64, 65536)
        check_power_of_two("ports", self.ports, 1, self.lanes // 8)
        check_power_of_two("gather_words", self.gather_words, 64, 4096, or_zero=True)
        check_power_of_two("port_bits", self.port_bits, 128, 512, or_zero=True)

    @property
    def word_bits(self) -> int:
        """Bits of a word of L channels."""
        return 8 * self.lanes

    @property
    def cell_lanes(self) -> int:
        """Lanes of a cell of the depthwise array: they share control and offsets."""
        return 8

    @property
    def sample_bits(self) -> int:
        """Bits of a sample S, signed: the difference of two int8 times 4^F."""
        return 9 + 2 * self.fraction_bits

    @property
    def pointwise_bits(self) -> int:
        """Bits of a pointwise sum, signed: of 2^14 products, or of samples where they may be inputs."""
        return TAP_SUM_BITS if self.samples else 8 + self.weight_bits + _CHANNEL_BITS

    @property
    def tile_bits(self) -> int:
        """Bits of the weights of a tile of PA x PE."""
        return self.inputs * self.outputs * self.weight_bits

    def port_width(self, board_bits: int) -> int:
        """Bits of a beat of each memory port, for a board whose ports have ``board_bits``."""
        return self.port_bits or board_bits
