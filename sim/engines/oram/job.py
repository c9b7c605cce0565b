"""A job of the oblivious map: operations, keys, and the golden model's results."""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, check_one_of
from hw.launch import Tensors
from hw.oram.config import BLOCK_BYTES, OramConfig
from hw.oram.driver.buffers import PAGES
from hw.oram.driver.keys import Secrets
from hw.oram.driver.operations import OperationResults, Operations
from hw.oram.driver.sealing import TAG, seal_commands, sealed_bytes
from sim.golden.oram.front import map_keys
from sim.golden.oram.gcm import Gcm
from sim.golden.oram.map import Command, ListOverflowError, ObliviousMap, OperationOutcome, keyed_map
from sim.run.adapter import Tamper

#: Tensors of a job; all but the first three are optional.
CODES, KEYS, VALUES = "codes", "keys", "values"
SEED, REJECTED, STATE, FINISH, TAMPERS = "seed", "rejected", "state", "finish", "tampers"
NAMES = (CODES, KEYS, VALUES, SEED, REJECTED, STATE, FINISH, TAMPERS)
#: Distance of the epochs of simulations with consecutive seeds: both words change.
_EPOCH_STEP = 0x9E3779B97F4A7C15


class Played(NamedTuple):
    """Outcomes of the operations, and the map after them."""

    outcomes: list[OperationOutcome]
    state: ObliviousMap


@dataclass(frozen=True, kw_only=True)
class OramJob:
    """A launch on an empty map."""

    config: OramConfig
    operations: Operations  #: In order.
    rejected: NDArray[np.bool_]  #: [n]: commands whose record is tampered with.
    secrets: Secrets
    state: bool  #: Pages, records and position map are compared after the launch too.
    finish: bool  #: The launch erases HBM at its end.
    tampers: tuple[Tamper, ...]  #: Tampering of the host with pages.

    @functools.cached_property
    def played(self) -> Played:
        """Run the operations on a golden map.

        Raises `InputError` when the overflow is full, and the engine would stop.
        """
        keys = map_keys(self.secrets.seed, self.secrets.epoch)
        state = keyed_map(self.config, permutation_key=keys.permutation, draw_key=keys.draw)
        rows = zip(*(x.tolist() for x in (self.operations.codes, self.operations.keys)), strict=True)
        commands = [
            Command(code, key, value.tobytes(), rejected)
            for (code, key), value, rejected in zip(
                rows, self.operations.values, self.rejected.tolist(), strict=True
            )
        ]
        try:
            return Played(state.run(commands), state)
        except ListOverflowError as error:
            raise InputError("overflow_entries", self.config.overflow_entries, f"more ({error})") from error

    @property
    def results(self) -> OperationResults:
        """Return the golden map's results."""
        outcomes = self.played.outcomes
        values = b"".join(outcome.value for outcome in outcomes)
        return OperationResults(
            statuses=np.array([outcome.status for outcome in outcomes], np.uint8),
            keys=np.array([outcome.key for outcome in outcomes], np.uint64),
            values=np.frombuffer(values, np.uint8).reshape(-1, self.config.value_bytes),
        )

    @property
    def commands(self) -> NDArray[np.uint8]:
        """Return sealed records [n, R]; each rejected one has one bit flipped, of a byte in rotation."""
        records = seal_commands(self.config, self.secrets.session, self.operations)
        (changed,) = np.nonzero(self.rejected)
        places = TAG + changed % (BLOCK_BYTES + sealed_bytes(self.config))
        records[changed, places] ^= (1 << changed % 8).astype(np.uint8)
        return records

    @property
    def ring_slots(self) -> int:
        """Slots of either ring: the operations, rounded up to a power of two."""
        return 1 << (len(self.operations) - 1).bit_length()

    @property
    def page_gcm(self) -> Gcm:
        """The cipher of the pages."""
        keys = map_keys(self.secrets.seed, self.secrets.epoch)
        return Gcm(keys.page, tag_bytes=self.config.mac_bits // 8)


def simulation_secrets(seed: int) -> Secrets:
    """Return keys and epoch of a simulation; they follow from the run's seed, as tests need."""
    digest = hashlib.sha256(f"loomwork oram {seed}".encode()).digest()
    return Secrets(session_key=digest[:16], seed=digest[16:], epoch=seed * _EPOCH_STEP % (1 << 64))


def read_job(tensors: Tensors, config: OramConfig) -> OramJob:
    """Make a job of tensors.

    ``tensors``: ``codes`` [n], ``keys`` [n] and ``values`` [n, V], see `Operations`. Optional are ``seed`` of
    `simulation_secrets`, default 0; ``rejected`` [n], tampered commands; ``state``, to compare the final map
    too; ``finish``, to erase HBM at the end; ``tampers`` [m, 6], the fields of each `Tamper` of the pages.

    Raises `InputError` for a tensor that is missing, unknown, of another shape, or out of range.
    """
    for name in tensors:
        check_one_of("tensor name", name, NAMES)
    codes = _whole(tensors, CODES, bits=8)
    count = codes.size
    if codes.ndim != 1 or not count:
        raise InputError(f"shape of {CODES}", codes.shape, "[n], of an operation at least")
    operations = Operations(
        codes=codes.astype(np.uint8),
        keys=_whole(tensors, KEYS, (count,), bits=config.key_bits),
        values=_whole(tensors, VALUES, (count, config.value_bytes), bits=8).astype(np.uint8),
    )
    rows = np.asarray(tensors.get(TAMPERS, np.zeros((0, 6), np.int64)))
    if rows.ndim != 2 or rows.shape[1] != 6:
        raise InputError(f"shape of {TAMPERS}", list(rows.shape), "[m, 6]")
    return OramJob(
        config=config,
        operations=operations,
        rejected=_whole(tensors, REJECTED, (count,), bits=1, default=np.zeros(count, bool)) > 0,
        secrets=simulation_secrets(int(_whole(tensors, SEED, (), bits=32, default=0))),
        state=bool(_whole(tensors, STATE, (), bits=1, default=0)),
        finish=bool(_whole(tensors, FINISH, (), bits=1, default=0)),
        tampers=tuple(Tamper(PAGES, *row) for row in rows.tolist()),
    )


def _whole(
    tensors: Tensors, name: str, shape: Sequence[int] | None = None, *, bits: int, default: object = None
) -> NDArray[np.uint64]:
    """Return a tensor of whole numbers of ``bits`` bits; for shape () a single number of any shape."""
    if name not in tensors and default is None:
        legal = f"such that {name} is among them, or operations by --ops"
        raise InputError("tensors", ", ".join(sorted(tensors)) or "none", legal)
    tensor = np.asarray(tensors.get(name, default))
    if shape == () and tensor.size == 1:
        tensor = tensor.reshape(())
    if shape is not None and tensor.shape != tuple(shape):
        raise InputError(f"shape of {name}", list(tensor.shape), str(list(shape)))
    if tensor.dtype.kind not in "iub":
        raise InputError(f"dtype of {name}", str(tensor.dtype), "a type of whole numbers")
    for number in (tensor.min(), tensor.max()) if tensor.size else ():
        if not 0 <= int(number) < 1 << bits:
            raise InputError(name, int(number), f"from 0 to 2^{bits} - 1")
    return tensor.astype(np.uint64)
