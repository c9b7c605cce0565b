# amaranth: UnusedElaboratable=no
"""Jobs from registers and descriptors, and what follows from their numbers."""

from collections import deque

import numpy as np
import pytest

from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, FIELDS, USED_BYTES, pack_descriptor
from hw.attention.walk.job_queue import JOBS_AHEAD, JobQueue
from hw.attention.walk.job_setup import JobSetup
from hw.errors import InputError
from tests.hw.attention.plain import (
    decoding,
    keeps,
    key_bytes,
    last_part,
    port_rows,
    port_units,
    positions,
    query_units,
    random_job,
    slots,
    small,
)
from tests.support.gateware.streams import Side, exchange, plain, seeds, simulate


def addressed(rng, job):
    """Return a job addresses of all 64 bits."""
    for name in ("q_offset", "o_offset", "bitmap", "slopes", "pages", "k_offset", "v_offset"):
        job.address[name] = int(rng.integers(1, 2**63)) << 1
    return job


def test_fields_do_not_overlap_and_are_read():
    used = [byte for offset, size in FIELDS.values() for byte in range(offset, offset + size)]
    assert len(used) == len(set(used))
    assert max(used) < USED_BYTES <= DESCRIPTOR_BYTES


def test_descriptor_bytes():
    raw = pack_descriptor({"q_offset": 0x0123_4567_89AB_CDEF, "queries": 3, "flags": 10})
    assert len(raw) == DESCRIPTOR_BYTES
    assert raw[:8] == bytes.fromhex("efcdab8967452301")
    assert sum(raw[8:]) == 13
    with pytest.raises(InputError, match=r"^descriptor field must be one of q_offset, .*, not 'size'$"):
        pack_descriptor({"size": 1})
    with pytest.raises(InputError, match=r"^keys must be from 0 to 2\^32 - 1, not -1$"):
        pack_descriptor({"keys": -1})


def run_queue(config, launches, *, width, latency, stall, seed):
    """Run launches, lists of jobs, through a queue before a memory of some latency; gives jobs and cycles."""
    rng = np.random.default_rng(seed)
    queue = JobQueue(config, data_width=width)
    base, step = 1 << 40, width // 8
    received, cycles, asked = [], [], []

    async def host(ctx):
        for jobs in launches:
            count, cycle = len(jobs), 0
            raw = b"".join(pack_descriptor(job.descriptor()) for job in jobs[1:])
            words, outstanding, got = deque(), 0, 0
            ctx.set(queue.first, jobs[0].layout(config))
            ctx.set(queue.address, base)
            ctx.set(queue.count, count - 1)
            ctx.set(queue.start, 1)
            while got < count or ctx.get(queue.busy):
                ctx.set(queue.fetch.ready, int(rng.random() >= stall))
                ctx.set(queue.o.ready, int(rng.random() >= stall))
                ready_words = bool(words) and words[0][0] <= cycle and rng.random() >= stall
                if ready_words:
                    ctx.set(queue.words.payload, words[0][1])
                ctx.set(queue.words.valid, int(ready_words))
                fetch, offer, taken = (
                    ctx.get(port.valid) and ctx.get(port.ready)
                    for port in (queue.fetch, queue.o, queue.words)
                )
                if fetch:
                    address = ctx.get(queue.fetch.payload)
                    asked.append(address)
                    at = address - base
                    piece = raw[at : at + USED_BYTES]
                    assert len(piece) == USED_BYTES
                    outstanding += 1
                    for n in range(0, USED_BYTES, step):
                        word = int.from_bytes(piece[n : n + step], "little")
                        words.append((cycle + latency, word))
                if ready_words:
                    assert taken, "there is room for all that was asked for"
                    words.popleft()
                if offer:
                    received.append(plain(ctx.get(queue.o.payload)))
                    cycles.append(cycle)
                    got += 1
                await ctx.tick()
                ctx.set(queue.start, 0)
                cycle += 1
            ctx.set(queue.o.ready, 0)
            await ctx.tick()

    simulate(queue, host)
    return received, cycles, asked


@pytest.mark.parametrize("width", [128, 256, 1024])
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_jobs_come_in_order(width, seed):
    rng = np.random.default_rng(seed)
    options = dict.fromkeys(("logit_cap", "alibi", "paged"), bool(seed % 2))
    config = small(output=str(rng.choice(["int8", "int16"])), **options)
    launches = [[addressed(rng, random_job(rng, config)) for _ in range(n)] for n in (1, 7, 2)]
    received, _, asked = run_queue(
        config, launches, width=width, latency=int(rng.integers(1, 20)), stall=0.3 * (seed % 3), seed=seed
    )
    assert received == [job.layout(config) for jobs in launches for job in jobs]
    assert len(asked) == sum(len(jobs) - 1 for jobs in launches)


def test_descriptors_are_fetched_ahead():
    """Latency is paid once for several jobs, and the first one waits for nothing."""
    rng = np.random.default_rng(0)
    config = small()
    jobs = [addressed(rng, random_job(rng, config)) for _ in range(1 + 2 * JOBS_AHEAD)]
    _, cycles, _ = run_queue(config, [jobs], width=1024, latency=50, stall=0.0, seed=0)
    assert cycles[0] == 0
    assert cycles[JOBS_AHEAD] <= 50 + 2 * JOBS_AHEAD + 6
    assert cycles[2 * JOBS_AHEAD] <= 100 + 4 * JOBS_AHEAD + 12


def expected_plan(config, job):
    """Return what the setup should make of a job."""
    count, ring = slots(config, job)
    size, rows = config.tile_keys * config.streams, port_rows(config, job.page_keys or job.keys)
    plan = {
        "job": job.layout(config),
        "empty": int(job.empty),
        "positions": positions(config, job),
        "joined": int(job.queries <= positions(config, job)),
        "diagonal": job.keys - job.queries,
        "q_head": job.queries * query_units(config, job.dqk) * 16,
        "o_head": job.queries * port_units(config, job.dv) * 16,
        "q_units": query_units(config, job.dqk),
        "o_units": port_units(config, job.dv),
        "k_head": rows * key_bytes(config, job.dqk),
        "v_head": rows * key_bytes(config, job.dv),
        "last_key_part": last_part(config, job.dqk),
        "last_value_part": last_part(config, job.dv),
        "bitmap_rows": 0 if job.bits is None else -(-job.keys // (256 * config.tile_keys * config.streams)),
        "slots": count,
        "ring": int(ring),
    }
    if config.decodes:
        plan["keeps"] = int(keeps(config, job))
    if config.paged:
        of_page = job.page_keys // size or 2 ** (65536 // size).bit_length()
        plan |= {"page_mask": of_page - 1, "page_shift": job.page_keys and of_page.bit_length() - 1}
    return plan


@pytest.mark.parametrize("seed", seeds(4, 16))
def test_setup(seed):
    rng = np.random.default_rng(seed)
    ports = int(rng.choice([1, 2, 4]))
    lanes = int(rng.integers(1, 6))
    config = small(
        rows=int(rng.integers(1, 17)),
        lanes=16 * lanes,
        folds=int(rng.integers(1, 5)),
        streams=int(rng.choice([1, 2, 4])),
        ports_per_stream=ports,
        query_ports=lanes & -lanes,
        result_ports=int(rng.choice([1, 2, 4])),
        cached_keys=int(rng.choice([0, 32, 256])),
        output=str(rng.choice(["int8", "int16", "bfloat16"])),
        logit_cap=bool(rng.random() < 0.5),
        paged=bool(seed % 2),
    )
    jobs = [addressed(rng, random_job(rng, config)) for _ in range(10)]
    jobs += [addressed(rng, random_job(rng, config, bits=None, queries=q, keys=k)) for q, k in EXTREMES]
    if config.paged:
        jobs.append(addressed(rng, random_job(rng, config, page_keys=65536)))
    check_setup(config, jobs, stall=float(rng.choice([0.0, 0.7])), seed=seed)


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_setup_of_both_phases(seed):
    rng = np.random.default_rng(seed)
    lanes, paged = int(rng.choice([16, 32, 64])), bool(seed % 2)
    config = decoding(lanes=lanes, folds=3, ports_per_stream=int(rng.choice([1, 2, 4])), paged=paged)
    jobs = [addressed(rng, random_job(rng, config)) for _ in range(12)]
    jobs += [addressed(rng, random_job(rng, config, bits=None, queries=q, keys=k)) for q, k in EXTREMES]
    assert len({job.decode for job in jobs}) == 2
    check_setup(config, jobs, stall=0.0, seed=seed)


def check_setup(config, jobs, *, stall, seed):
    setup = JobSetup(config)
    sides = {
        "i": Side(setup.i, items=[job.layout(config) for job in jobs], stall=stall),
        "o": Side(setup.o, count=len(jobs), stall=stall),
    }
    exchange(setup, sides, seed=seed)
    assert sides["o"].received == [expected_plan(config, job) for job in jobs]
    assert stall or (sides["o"].gapless and sides["o"].cycles[0] == 2)


EXTREMES = [(65536, 65536), (65536, 1), (1, 65536), (0, 5), (5, 0), (65536, 65535), (65535, 64000)]
