"""Memory layout of an attention launch: q, k, v and o at their ports, tables and descriptors."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.driver.job import LaunchJobs, Piece
from hw.attention.driver.modes import Sequence
from hw.attention.kernel.arguments import stream_ports
from hw.attention.walk.descriptor import (
    CAUSAL,
    DECODE,
    DESCRIPTOR_BYTES,
    FIELDS,
    PAGED,
    REUSE_KV,
    SCALARS,
    SPARSE,
    WINDOWED,
    pack_descriptor,
)
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, PAGE_ENTRY_BYTES, PAGE_GROUP, SLOPE_BYTES
from hw.launch import Buffer, Bytes, Launch, Tensor

_ALIGN = 64


class Layout:
    """Addresses of a launch's tensors in memory.

    ``sequences`` has the byte offsets of each sequence's tensors in each of their ports, by name. ``sizes``
    has the bytes of such a port. For queries both count all ports together.
    """

    def __init__(self, job: LaunchJobs, config: AttentionConfig) -> None:
        inputs = job.inputs
        self._job, self._config = job, config
        self.sequences: list[dict[str, int]] = []
        self.sizes = dict.fromkeys("qokv", 0)
        #: Bytes of a query at all of its ports together, and of a row of results at a port.
        self.query_bytes = config.query_bytes(inputs.q.shape[2])
        self._query_unit = (config.part_bits if config.decodes else UNIT_BITS) // 8
        self.row_bytes = config.result_units(inputs.v.shape[2]) * UNIT_BITS // 8
        for tokens in inputs.sequences:
            lengths = {
                "q": inputs.heads * tokens.query_count * self.query_bytes,
                "o": inputs.heads * tokens.query_count * self.row_bytes,
                "k": self._key_bytes(inputs.k, tokens.key_count),
                "v": self._key_bytes(inputs.v, tokens.key_count),
            }
            self.sequences.append(self.sizes)
            every = config.query_port_count * max(_ALIGN, self._query_unit)
            aligns = dict.fromkeys("okv", _ALIGN) | {"q": every}
            self.sizes = {
                name: -(-(start + lengths[name]) // aligns[name]) * aligns[name]
                for name, start in self.sizes.items()
            }
        if inputs.page_keys:
            # Sequences own no keys: offsets are relative to the pool.
            self.sequences = [offsets | {"k": 0, "v": 0} for offsets in self.sequences]
            pages = inputs.k.shape[1] // inputs.page_keys
            sides = {"k": inputs.k, "v": inputs.v}
            self.sizes |= {
                side: pages * self._key_bytes(tensor, inputs.page_keys) for side, tensor in sides.items()
            }

    def launch(self) -> Launch:
        """Return the kernel call."""
        job, config, inputs = self._job, self._config, self._job.inputs
        bitmaps, bitmap_offsets = self._bitmaps()
        buffers = [_input(f"q{n}", content) for n, content in enumerate(self._queries())]
        for side, tensor in (("k", inputs.k), ("v", inputs.v)):
            ports = self._ports(side, tensor)
            buffers += [_input(f"{side}{n}", ports[n]) for n in range(len(stream_ports(config)))]
        buffers += [
            Buffer(argument=f"o{w}", data=None, size_bytes=self.sizes["o"], output=True)
            for w in range(config.result_ports)
        ]
        nulls = []
        descriptors, links = self._descriptors(bitmap_offsets)
        tables = {
            "bitmap": bitmaps,
            "slopes": self._slopes(),
            "pages": self._page_tables(),
            "jobs": descriptors,
        }
        for name, given in tables.items():
            if given.size:
                buffers.append(_input(name, given, links if name == "jobs" else ()))
            else:
                nulls.append(name)
        first = self._fields(job.pieces[0], 0)
        return Launch(
            scalars={name: first[name] for name in SCALARS} | {"job_count": len(job.pieces) - 1},
            buffers=tuple(buffers),
            nulls=tuple(nulls),
        )

    def results(self, buffers: Mapping[str, Bytes]) -> Tensor:
        """Read ``o`` [H, Nq, dv] from the buffers of its ports; units of its rows are dealt in turn."""
        job, dtype = self._job, self._job.pieces[0].integers.output.dtype
        heads, _, size = shape = job.shape
        whole = np.empty(shape, dtype)
        for tokens, offsets in zip(job.inputs.sequences, self.sequences, strict=True):
            length, unit = heads * tokens.query_count * self.row_bytes, UNIT_BITS // 8
            ports = [
                buffers[f"o{w}"][offsets["o"] : offsets["o"] + length].reshape(
                    -1, self.row_bytes // unit, unit
                )
                for w in range(self._config.result_ports)
            ]
            rows = np.stack(ports, axis=2).reshape(-1, self.row_bytes * len(ports))
            little = np.dtype(dtype).newbyteorder("<")
            raw = np.ascontiguousarray(rows[:, : size * whole.itemsize])
            whole[:, tokens.queries] = raw.view(little).reshape(heads, tokens.query_count, size)
        return whole

    def _queries(self) -> Bytes:
        """Return the buffers of the ports ``[Q, bytes]``; units or parts of queries are dealt in turn."""
        inputs, ports = self._job.inputs, self._config.query_port_count
        whole = np.zeros(self.sizes["q"], np.uint8)
        padding = self.query_bytes - inputs.q.shape[2]
        for tokens, offsets in zip(inputs.sequences, self.sequences, strict=True):
            rows = np.pad(inputs.q[:, tokens.queries], ((0, 0), (0, 0), (0, padding))).view(np.uint8)
            whole[offsets["q"] : offsets["q"] + rows.size] = rows.reshape(-1)
        turns = np.moveaxis(whole.reshape(-1, ports, self._query_unit), 1, 0)
        return np.ascontiguousarray(turns).reshape(ports, -1)

    def _ports(self, side: str, tensor: Tensor) -> Bytes:
        """Return the buffers of the ports: ``[S * P, bytes]``."""
        config, inputs = self._config, self._job.inputs
        ports = config.streams * config.ports
        whole = np.zeros((ports, self.sizes[side]), np.uint8)
        if size := inputs.page_keys:
            pages = np.split(tensor, tensor.shape[1] // size, axis=1)
            step = self._key_bytes(tensor, size)
            pieces = [(n * step, page) for n, page in enumerate(pages)]
        else:
            pieces = [
                (offsets[side], tensor[:, tokens.keys])
                for tokens, offsets in zip(inputs.sequences, self.sequences, strict=True)
            ]
        for offset, piece in pieces:
            content = spread(config, piece).reshape(ports, -1).view(np.uint8)
            whole[:, offset : offset + content.shape[1]] = content
        return whole

    def _key_bytes(self, tensor: Tensor, keys: int) -> int:
        """Return the bytes in a port of ``keys`` keys, or values, of all heads."""
        return len(tensor) * port_rows(self._config, keys) * key_bytes(self._config, tensor.shape[2])

    def _bitmaps(self) -> tuple[Bytes, list[int]]:
        """Return the bitmaps of all jobs and their offsets; the first job's is the first."""
        raw, offsets, end = [], [], 0
        for piece in self._job.pieces:
            offsets.append(end)
            if piece.integers.mask.bitmap is not None:
                raw.append(bitmap_bytes(piece.integers.mask.bitmap))
                end += raw[-1].size
        return np.concatenate(raw) if raw else np.zeros(0, np.uint8), offsets

    def _slopes(self) -> Bytes:
        """Return the slopes of all heads, none if the launch has none."""
        first = self._job.inputs.sequences[0]
        pieces = [piece for piece in self._job.pieces if piece.tokens == first]
        pieces.sort(key=lambda piece: piece.share.heads.start)
        found = [slope for piece in pieces for slope in piece.integers.slopes or ()]
        return _bytes(np.array(found, "<i4"))

    def _page_tables(self) -> Bytes:
        """Return the page tables of all sequences, each padded to whole groups of entries."""
        inputs = self._job.inputs
        tables = []
        for tokens in inputs.sequences:
            if tokens.pages is not None:
                table = np.zeros((_table_entries(tokens), 2), "<u4")
                for n, tensor in enumerate((inputs.k, inputs.v)):
                    units = self._key_bytes(tensor, inputs.page_keys) * 8 // UNIT_BITS
                    table[: len(tokens.pages), n] = tokens.pages * units
                tables.append(_bytes(table))
        return np.concatenate(tables) if tables else np.zeros(0, np.uint8)

    def _descriptors(self, bitmaps: list[int]) -> tuple[Bytes, tuple[tuple[int, str], ...]]:
        """Return the descriptors of all jobs but the first, and the addresses in them."""
        raw, links = [], []
        for n, piece in enumerate(self._job.pieces[1:]):
            raw.append(np.frombuffer(pack_descriptor(self._fields(piece, bitmaps[n + 1])), np.uint8))
            names = ["bitmap"] if piece.integers.mask.bitmap is not None else []
            names += ["slopes"] if piece.integers.slopes is not None else []
            names += ["pages"] if piece.tokens.pages is not None else []
            links += [(n * DESCRIPTOR_BYTES + FIELDS[name][0], name) for name in names]
        return np.concatenate(raw) if raw else np.zeros(0, np.uint8), tuple(links)

    def _fields(self, piece: Piece, bitmap: int) -> dict[str, int]:
        """Return the fields of a job, with addresses relative to their buffers."""
        golden, offsets = piece.integers, self.sequences[piece.share.sequence]
        (heads, queries, query_size), (_, keys, value_size) = golden.q.shape, golden.v.shape
        page_keys = self._job.inputs.page_keys
        rows, kv_head = port_rows(self._config, page_keys or keys), piece.share.kv_heads.start
        tables = self._job.inputs.sequences[: piece.share.sequence]
        mask, output = golden.mask, golden.output
        flags = {
            CAUSAL: mask.causal,
            WINDOWED: mask.window > 0,
            SPARSE: mask.bitmap is not None,
            REUSE_KV: piece.share.shape.reuse_kv,
            PAGED: page_keys > 0,
            DECODE: piece.share.shape.decode,
        }
        # Over all ports, or in each of them.
        first = offsets["q"] + piece.share.heads.start * queries * self.query_bytes
        return {
            "q_offset": first if self._config.decodes else first // self._config.query_port_count,
            "o_offset": offsets["o"] + piece.share.heads.start * queries * self.row_bytes,
            "k_offset": offsets["k"] + kv_head * rows * key_bytes(self._config, query_size),
            "v_offset": offsets["v"] + kv_head * rows * key_bytes(self._config, value_size),
            "bitmap": bitmap if mask.bitmap is not None else 0,
            "slopes": SLOPE_BYTES * piece.share.heads.start if golden.slopes is not None else 0,
            "pages": PAGE_ENTRY_BYTES * sum(map(_table_entries, tables)),
            "queries": queries,
            "keys": keys,
            "heads": heads,
            "kv_group": piece.share.shape.kv_group,
            "pack": piece.share.shape.pack,
            "query_bytes": query_size,
            "value_bytes": value_size,
            "flags": sum(flag for flag, given in flags.items() if given),
            "window": mask.window,
            "score_multiplier": golden.scale.multiplier,
            "score_shift": golden.scale.shift,
            "output_multiplier": output.multiplier,
            "output_shift": output.shift,
            "output_fraction": output.fraction,
            "cap_multiplier": golden.cap,
            "page_keys": page_keys,
        }


def _table_entries(tokens: Sequence) -> int:
    """Return the length of a sequence's page table, in whole groups of entries; 0 without pages."""
    return 0 if tokens.pages is None else -(-len(tokens.pages) // PAGE_GROUP) * PAGE_GROUP


def port_rows(config: AttentionConfig, keys: int) -> int:
    """Return the rows of each port for a K/V head: whole tiles, equally many in each stream."""
    tiles = -(-keys // config.tile_span)
    return tiles * config.tile_keys // config.ports


def key_bytes(config: AttentionConfig, size: int) -> int:
    """Return the bytes of a key or value of ``size`` elements at its port."""
    return config.key_units(size) * UNIT_BITS // 8


def spread(config: AttentionConfig, tensor: NDArray[np.int8]) -> NDArray[np.int8]:
    """Spread keys or values ``[Hkv, Nk, d]`` over streams and ports: ``[S, P, Hkv, rows, bytes]``.

    Key j is key ``j // S`` of stream ``j mod S``; row n of a stream is row ``n // P`` of port ``n mod P``.
    """
    heads, keys, size = tensor.shape
    streams, ports, rows = config.streams, config.ports, port_rows(config, keys)
    row = key_bytes(config, size)
    whole = np.zeros((heads, rows * ports * streams, row), np.int8)
    whole[:, :keys, :size] = tensor
    return np.ascontiguousarray(whole.reshape(heads, rows, ports, streams, row).transpose(3, 2, 0, 1, 4))


def bitmap_bytes(bitmap: NDArray[np.bool_]) -> Bytes:
    """Return a bitmap as in memory: a bit a tile, lowest first, rows of whole `BITMAP_ROW_BYTES`."""
    blocks, tiles = bitmap.shape
    padded = np.zeros((blocks, -(-tiles // (8 * BITMAP_ROW_BYTES)) * 8 * BITMAP_ROW_BYTES), np.bool_)
    padded[:, :tiles] = bitmap
    return np.packbits(padded, axis=1, bitorder="little").reshape(-1)


def _bytes(tensor: Tensor) -> Bytes:
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def _input(argument: str, data: Bytes, links: tuple[tuple[int, str], ...] = ()) -> Buffer:
    return Buffer(argument=argument, data=np.ascontiguousarray(data), size_bytes=data.size, links=links)
