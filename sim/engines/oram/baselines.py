"""Traffic of an operation in other maps: BOLT, Path ORAM, and a hash table that hides nothing.

Each map is configured at its best, on equal terms: keys of 8 bytes, values of V, whole operations, the same
share of trusted HBM. Pages are rounded up to the host port's beat. They include a tag of 16 bytes if the map
would have to seal them.
"""

import math
from dataclasses import dataclass

from hw.errors import check_range
from hw.oram.config import BEAT_BYTES, BLOCK_BYTES
from hw.oram.model.link import block_bursts

#: Bytes of a key.
KEY_BYTES = 8
#: Published times of an operation of BOLT on a U55C, V = 8 bytes, alpha 0.2: keys and seconds (the authors'
#: artifact, logs of BOLT-benchmark).
BOLT_SECONDS = {1 << 20: 4.57e-6, 5 << 20: 5.80e-6}


@dataclass(frozen=True, kw_only=True)
class OperationTraffic:
    """Average traffic of an operation."""

    name: str  #: Of the map.
    #: ``read_bytes``, ``write_bytes``: from and to the host's memory.
    read_bytes: float
    write_bytes: float
    #: ``reads``, ``writes``: accesses of the host's memory: pages, buckets of a tree.
    reads: float
    writes: float
    bursts: float  #: Of all accesses, see `block_bursts`.
    slots: float  #: Slots of a key, or of a block of labels, read and written.
    #: ``host_bytes``, ``hbm_bytes``: memory of the whole map.
    host_bytes: float
    hbm_bytes: float

    @property
    def moved_bytes(self) -> float:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes

    @property
    def accesses(self) -> float:
        """Reads and writes."""
        return self.reads + self.writes


def _page(slots: int, value_bytes: int, *, header: int = BLOCK_BYTES + 8) -> int:
    """Return the bytes of a page: tag, bitmap and slots."""
    return -(-(header + slots * (KEY_BYTES + value_bytes)) // BEAT_BYTES) * BEAT_BYTES


def _check(log_n: int, value_bytes: int) -> None:
    check_range("log_n", log_n, 8, 40)
    check_range("value_bytes", value_bytes, 1)


@dataclass(frozen=True, kw_only=True)
class BoltBounds:
    """Bounds of BOLT's structures, as computed by its own program (artifact, exp_validation/sim.cpp)."""

    load: float  #: L, keys of the fullest bin: c + log2 log2 N + 1, with two choices.
    hbm_keys: float  #: Keys whose bin lies in HBM.
    queue: float  #: Keys that wait in HBM for a page.


def bolt_bounds(log_n: int, *, alpha: float = 0.2, bin_keys: int = 8) -> BoltBounds:
    """Return the bounds for N = 2^log_n keys in bins of ``bin_keys``, a share ``alpha`` of them in HBM."""
    _check(log_n, 1)
    keys = 1 << log_n
    bins = keys / bin_keys
    load = bin_keys + math.log2(log_n) + 1
    nats = math.log(keys)
    in_hbm, in_host = alpha * bins, (1 - alpha) * bins
    return BoltBounds(
        load=load,
        hbm_keys=in_hbm * bin_keys + load * math.sqrt(in_hbm * nats),
        queue=(1 + alpha) * in_host / 2 + load * math.sqrt(in_host * nats),
    )


def bolt(log_n: int, value_bytes: int, *, alpha: float = 0.2, bin_keys: int = 8) -> OperationTraffic:
    """BOLT (Guo et al., CCS 2025, arXiv 2509.01742): an operation draws two bins, reads both and writes both.

    A page holds the bound on a bin's load. HBM holds the position map, four entries of 12 bytes a key; the
    values of its bins; and the eviction index, 4 bytes a bin (artifact, mem_alocation/mem.cpp).
    """
    _check(log_n, value_bytes)
    bounds = bolt_bounds(log_n, alpha=alpha, bin_keys=bin_keys)
    keys = 1 << log_n
    bins = keys / bin_keys
    slots, touched = math.ceil(bounds.load), 2 * (1 - alpha)
    page = _page(slots, value_bytes)
    waiting = bounds.hbm_keys + bounds.queue
    return OperationTraffic(
        name="BOLT",
        read_bytes=touched * page,
        write_bytes=touched * page,
        reads=touched,
        writes=touched,
        bursts=2 * touched * block_bursts(page),
        slots=2 * touched * slots,
        host_bytes=(1 - alpha) * bins * page,
        hbm_bytes=keys * 4 * 12 + waiting * value_bytes + 4 * bins,
    )


def bolt_cycles(log_n: int, *, clock_mhz: float) -> float:
    """Return the cycles of an operation of BOLT, on the line through its published times over log2 N."""
    (few, short), (many, long) = ((math.log2(keys), time) for keys, time in sorted(BOLT_SECONDS.items()))
    seconds = short + (long - short) * (log_n - few) / (many - few)
    return seconds * clock_mhz * 1e6


def path_levels(log_n: int) -> int:
    """Return the levels of a Path ORAM's tree for N = 2^log_n blocks: L + 1, where L = log2 N."""
    return log_n + 1


def path_oram(
    log_n: int, value_bytes: int, *, alpha: float = 0.2, bucket_slots: int = 4, recursive: bool = False
) -> OperationTraffic:
    """A map on Path ORAM (Stefanov et al., CCS 2013, figure 1): an operation reads the buckets from the root
    to a leaf and writes them back; a miss reads a random path.

    Z = 4 is the smallest bucket with a small stash in the paper's measurements (section 7). The highest
    levels lie in HBM, as many as hold ``alpha`` of the keys' slots. The position map lies in HBM too, as ours
    does. With ``recursive`` it lies in smaller Path ORAMs of 16 labels a block (section 6), each one access
    more. The recursion ends with a map no larger than the levels in HBM, or than a block, which joins them.
    Keys are then indices of an array.
    """
    _check(log_n, value_bytes)
    keys = 1 << log_n
    # Levels whose slots are at most alpha N.
    cached = min(log_n, math.floor(math.log2(alpha * keys / bucket_slots + 1)))
    buckets = path_levels(log_n) - cached
    page = _page(bucket_slots, value_bytes)
    total, accesses, bursts = buckets * page, buckets, buckets * block_bursts(page)
    host = ((2 << log_n) - (1 << cached)) * page
    top = ((1 << cached) - 1) * page
    label_bytes = 4
    name, hbm = "Path ORAM", top + keys * (KEY_BYTES + label_bytes)
    if recursive:
        labels = 16
        small, small_page = log_n, _page(bucket_slots, labels * label_bytes)
        while (1 << small) * label_bytes > max(top, labels * label_bytes):
            small -= 4
            total += path_levels(small) * small_page
            accesses += path_levels(small)
            bursts += path_levels(small) * block_bursts(small_page)
            host += ((2 << small) - 1) * small_page
        name, hbm = "Path ORAM, recursive", top + (1 << small) * label_bytes
    return OperationTraffic(
        name=name,
        read_bytes=total,
        write_bytes=total,
        reads=accesses,
        writes=accesses,
        bursts=2 * bursts,
        slots=2 * accesses * bucket_slots,
        host_bytes=host,
        hbm_bytes=hbm,
    )


def chained_reads(load: float, slots: int) -> float:
    """Return the average pages of ``slots`` read for an existing key in a chained hash table.

    Keys with one hash lie in a chain of pages; their number is Poisson with the mean ``load`` (Knuth, volume
    3, 6.4). A key's rank among its k neighbours is uniform, and a key sees k neighbours with k's share of all
    keys.
    """
    most = int(load + 40 * math.sqrt(load) + 40)
    total, chance = 0.0, math.exp(-load)
    reads = 0
    for k in range(1, most):
        chance *= load / k
        reads += -(-k // slots)
        total += chance * reads
    return total / load


def hash_table(log_n: int, value_bytes: int, *, puts: float = 0.5, full: float = 0.75) -> OperationTraffic:
    """A chained hash table in the host's memory that hides nothing and seals nothing.

    A page is a beat, or as many as a slot needs. Pages are ``full`` on average; a share ``puts`` of the
    operations writes the page of its key back.
    """
    _check(log_n, value_bytes)
    keys = 1 << log_n
    slots = max(1, BEAT_BYTES // (KEY_BYTES + value_bytes))
    page = _page(slots, value_bytes, header=0)
    reads = chained_reads(full * slots, slots)
    return OperationTraffic(
        name="hash table (insecure)",
        read_bytes=reads * page,
        write_bytes=puts * page,
        reads=reads,
        writes=puts,
        bursts=(reads + puts) * block_bursts(page),
        slots=(reads + puts) * slots,
        host_bytes=keys / (full * slots) * page,
        hbm_bytes=0.0,
    )
