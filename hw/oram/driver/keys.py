"""Keys and epoch of a map: its secret arguments, and the keys that engine and client derive from them."""

from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hw.errors import InputError
from hw.oram.kernel.arguments import LOCK, SECRET_WORDS

#: Bytes of a key, and of the confirmation in a response.
KEY_BYTES, CONFIRM_BYTES = 16, 7
#: Labels of the blocks under the session key and under the seed.
_WORKING_KEY, _CONFIRMATION = 4, 5


@dataclass(frozen=True, kw_only=True)
class Session:
    """The client's secrets: all that it needs to seal commands and to open responses."""

    key: bytes  #: The working key of commands and responses, 16 bytes.
    confirm: bytes  #: The confirmation that a map with the right seed and epoch puts into each response.


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """Keys and epoch of a map from one reset to the next.

    An epoch serves once with a session key, and once with a seed: else keys in use and initialization vectors
    repeat. Keys should be fresh for each epoch: a host may write an earlier one into registers that are not
    written yet.
    """

    session_key: bytes  #: 16 bytes, of which the client's working key is derived.
    seed: bytes  #: 16 bytes, of which all other keys are derived.
    epoch: int  #: From 0 to 2^64 - 1.

    def __post_init__(self) -> None:
        for name in ("session_key", "seed"):
            if len(getattr(self, name)) != KEY_BYTES:
                raise InputError(f"bytes of {name}", len(getattr(self, name)), str(KEY_BYTES))
        if not 0 <= self.epoch < 1 << 64:
            raise InputError("epoch", self.epoch, "from 0 to 2^64 - 1")

    @property
    def session(self) -> Session:
        """Return the client's secrets; its working key has label 4, the confirmation label 5."""
        confirm = derived(self.seed, _CONFIRMATION, self.epoch)[:CONFIRM_BYTES]
        return Session(key=derived(self.session_key, _WORKING_KEY, self.epoch), confirm=confirm)

    @property
    def scalars(self) -> dict[str, int]:
        """Return the secret arguments of the kernel by name, then the lock."""
        given = {
            "session_key": self.session_key,
            "seed": self.seed,
            "epoch": self.epoch.to_bytes(8, "little"),
        }
        words = {
            f"{name}{n}": int.from_bytes(given[name][4 * n : 4 * n + 4], "little")
            for name, count in SECRET_WORDS.items()
            for n in range(count)
        }
        return words | {LOCK: 1}


def derived(key: bytes, label: int, epoch: int) -> bytes:
    """Encrypt a block under ``key``: the label, then the epoch, 8 bytes each, the lowest first."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(label.to_bytes(8, "little") + epoch.to_bytes(8, "little"))
