"""Kernel calls one after another without a reset between them, each of jobs of any modes.

All jobs of a user's launch have the same modes.  Here such launches become one kernel call: their jobs follow
each other, and their buffers lie behind each other in memory.
"""

from dataclasses import dataclass

import numpy as np

from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, FIELDS, PAGED, SCALARS, SPARSE, pack_descriptor
from hw.launch import Buffer, Launch
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import random_tensors

#: Jobs of a call, and the most of one part of it.
JOBS = range(5, 10)
PART_JOBS = 4
#: Alignment of data behind a port: no part of a query or key is longer.
_GRAIN = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """A launch that is part of a call."""

    job: object  #: The `AttentionJob`.
    launch: Launch  #: As if it were alone.
    starts: dict  #: Where its bytes begin behind each pointer.

    def descriptors(self, config, first):
        """Return the descriptor of each job, with offsets from those of the call's ``first`` part, and the
        tables that it names.
        """
        content = {buffer.argument: buffer for buffer in self.launch.buffers}
        own = {name: self.launch.scalars[name] for name in SCALARS}
        raw, tables = [pack_descriptor(own)], [["slopes"] if "slopes" in content else []]
        tables[0] += [name for name, flag in (("bitmap", SPARSE), ("pages", PAGED)) if own["flags"] & flag]
        if "jobs" in content:
            jobs = content["jobs"]
            raw += [row.tobytes() for row in jobs.data.reshape(-1, DESCRIPTOR_BYTES)]
            tables += [[] for _ in raw[1:]]
            for at, name in jobs.links:
                tables[1 + at // DESCRIPTOR_BYTES].append(name)
        moves = {f"{side}_offset": self.starts[f"{side}0"] - first.starts[f"{side}0"] for side in "qokv"}
        if config.decodes:
            moves["q_offset"] *= config.query_port_count
        found = []
        for descriptor, names in zip(raw, tables, strict=True):
            moved = bytearray(descriptor)
            for name, move in (moves | {name: self.starts[name] for name in names}).items():
                at, size = FIELDS[name]
                moved[at : at + size] = (int.from_bytes(moved[at : at + size], "little") + move).to_bytes(
                    size, "little"
                )
            found.append((bytes(moved), names))
        return found

    def outputs(self, config, buffers):
        """Read its results from the kernel's buffers."""
        own = {}
        for buffer in self.launch.buffers:
            if buffer.output:
                start = self.starts[buffer.argument]
                own[buffer.argument] = buffers[buffer.argument][start : start + buffer.size_bytes]
        return ADAPTER.outputs(self.job, config, own)


def random_calls(rng, config, board, count):
    """Draw calls of any modes: a list of parts for each, of `JOBS` jobs together."""
    ends, calls = {}, []
    for _ in range(count):
        parts, jobs, wanted = [], 0, int(rng.choice(JOBS))
        while jobs < wanted:
            tensors = random_tensors(rng, config)
            if config.alibi and not calls and not parts:
                # The first call's pointer to slopes is that of its first job, and others have some.
                tensors.setdefault("alibi_slopes", 2.0 ** -rng.uniform(0, 8, len(tensors["q"])))
            job = ADAPTER.job(tensors, config)
            if len(job.pieces) > min(PART_JOBS, JOBS[-1] - jobs):
                continue
            launch = ADAPTER.launch(job, config, board)
            starts = {buffer.argument: ends.get(buffer.argument, 0) for buffer in launch.buffers}
            gap = _GRAIN * int(rng.integers(4))
            for buffer in launch.buffers:
                end = starts[buffer.argument] + buffer.size_bytes
                ends[buffer.argument] = -(-end // _GRAIN) * _GRAIN + gap
            parts.append(Part(job=job, launch=launch, starts=starts))
            jobs += len(job.pieces)
        calls.append(parts)
    return calls


def put_together(rng, config, calls):
    """Return one launch of all calls; memory between their buffers is noise."""
    content, size = {}, {}
    for part in (part for parts in calls for part in parts):
        for buffer in part.launch.buffers:
            at, name = part.starts[buffer.argument], buffer.argument
            size[name] = at + buffer.size_bytes
            if name != "jobs":
                content.setdefault(name, []).append((at, buffer))
    buffers = []
    for name, given in content.items():
        data = None
        if given[0][1].data is not None:
            data = rng.integers(0, 256, size[name], np.uint8)
            for at, buffer in given:
                data[at : at + buffer.size_bytes] = buffer.data
        buffers.append(Buffer(argument=name, data=data, size_bytes=size[name], output=data is None))
    jobs, links, arguments = b"", [], []
    for parts in calls:
        first = parts[0]
        of_call = [found for part in parts for found in part.descriptors(config, first)][1:]
        own = {name: first.launch.scalars[name] for name in SCALARS} | {"job_count": len(of_call)}
        own |= {name: first.starts.get(name) for name in content} | {"jobs": len(jobs)}
        arguments.append(own)
        for descriptor, names in of_call:
            links += [(len(jobs) + FIELDS[name][0], name) for name in names]
            jobs += descriptor
    buffers.append(
        Buffer(argument="jobs", data=np.frombuffer(jobs, np.uint8), size_bytes=len(jobs), links=tuple(links))
    )
    nulls = tuple(name for name in ("bitmap", "slopes", "pages") if name not in content)
    return Launch(
        scalars={name: arguments[0][name] for name in (*SCALARS, "job_count")},
        buffers=tuple(buffers),
        nulls=nulls,
        then=tuple(arguments[1:]),
    )
