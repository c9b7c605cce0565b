"""Jobs in memory: the fields of a descriptor, its packing on the host, and its unpacking in gates."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Value

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import UNIT_SHIFT, Job
from hw.lib.descriptors.fields import pack_fields

#: Distance of descriptors in bytes, and the bytes of each that are read.
DESCRIPTOR_BYTES = 256
USED_BYTES = 128

_ADDRESSES = ("q_offset", "o_offset", "k_offset", "v_offset", "bitmap", "slopes", "pages")
#: Scalars; also the names of the launch's arguments for the first job.
SCALARS = (
    "queries",
    "keys",
    "heads",
    "kv_group",
    "pack",
    "query_bytes",
    "value_bytes",
    "flags",
    "window",
    "score_multiplier",
    "score_shift",
    "output_multiplier",
    "output_shift",
    "output_fraction",
    "cap_multiplier",
    "page_keys",
)
#: Byte offset and bytes of every field, all little endian.
FIELDS: dict[str, tuple[int, int]] = {
    **{name: (8 * n, 8) for n, name in enumerate(_ADDRESSES)},
    **{name: (8 * len(_ADDRESSES) + 4 * n, 4) for n, name in enumerate(SCALARS)},
}
#: Values of ``flags``.
CAUSAL, WINDOWED, SPARSE, REUSE_KV, PAGED, DECODE = 1, 2, 4, 8, 16, 32


def pack_descriptor(fields: Mapping[str, int]) -> bytes:
    """Return the `DESCRIPTOR_BYTES` bytes of a descriptor.

    ``fields``: values by the names of `FIELDS`; missing ones are 0.  Raises `InputError` for an
    unknown field, or a value that does not fit.
    """
    return pack_fields(FIELDS, fields, descriptor_bytes=DESCRIPTOR_BYTES)


def job_fields(config: AttentionConfig, job: Any, fields: Mapping[str, Value]) -> list[Any]:
    """Return the assignments of ``fields``, by the names of `FIELDS`, to ``job``, a view of `Job`.

    Values that do not fit the fields of `Job` lose their upper bits.
    """
    names = (
        "q_offset",
        "o_offset",
        "bitmap",
        "slopes",
        "k_offset",
        "v_offset",
        "queries",
        "keys",
        "heads",
        "kv_group",
    )
    assignments = [job[name].eq(fields[name]) for name in (*names, "pack", "window")]
    assignments += [
        job.query_units.eq(fields["query_bytes"] >> UNIT_SHIFT),
        job.value_units.eq(fields["value_bytes"] >> UNIT_SHIFT),
        job.flags.eq(fields["flags"][: Job(config)["flags"].shape.size]),
        job.multiplier.eq(fields["score_multiplier"]),
        job.shift.eq(fields["score_shift"]),
    ]
    if config.output == "int16":
        assignments.append(job.scale.fraction.eq(fields["output_fraction"]))
    else:
        assignments += [
            job.scale.multiplier.eq(fields["output_multiplier"]),
            job.scale.shift.eq(fields["output_shift"]),
        ]
    if config.logit_cap:
        assignments.append(job.cap.eq(fields["cap_multiplier"]))
    if config.paged:
        assignments += [job[name].eq(fields[name]) for name in ("pages", "page_keys")]
    return assignments


def descriptor_fields(raw: Value) -> dict[str, Value]:
    """Split the first `USED_BYTES` of a descriptor into its fields."""
    return {name: raw[8 * offset : 8 * (offset + size)] for name, (offset, size) in FIELDS.items()}
