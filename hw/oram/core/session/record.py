"""Sealed commands and responses in the form of the ciphers."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value

from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, VERSION_BITS, OramConfig
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.layouts import PAGE_BITS

#: Bits of a sequence number.
SEQUENCE_BITS = 64
#: Bits of the confirmation of keys and epoch, in each response.
CONFIRM_BITS = 56
#: Blocks of a beat.
BEAT_BLOCKS = BEAT_BYTES // BLOCK_BYTES
#: Blocks of the sealed text before the value: code or status, and key.
TEXT_HEADER_BLOCKS = 1
#: Last word of the initialization vector.
COMMAND, RESPONSE = 0, 1


def record_shape(config: OramConfig) -> PageShape:
    """Return a record without its first block: a page of one lane."""
    value = -(-config.value_bytes // BLOCK_BYTES)
    return PageShape(page_bytes=BLOCK_BYTES * (1 + TEXT_HEADER_BLOCKS + value), lanes=1)


def record_nonces(m: Module, request: Any, enable: Value, direction: int) -> None:
    """Request the keystreams of records in order, from sequence number 0 on, ahead of their arrival."""
    sequence = Signal(SEQUENCE_BITS, name="nonce_sequence")
    vector = Cat(sequence, Const(direction, PAGE_BITS + VERSION_BITS - SEQUENCE_BITS))
    m.d.comb += [
        request.valid.eq(enable),
        request.payload.page.eq(vector[:PAGE_BITS]),
        request.payload.version.eq(vector[PAGE_BITS:]),
    ]
    with m.If(request.valid & request.ready):
        m.d.sync += sequence.eq(sequence + 1)
