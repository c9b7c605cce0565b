"""Derivations against `cryptography`, and the words of the registers."""

import itertools

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hw.errors import InputError
from hw.oram.driver.keys import Secrets
from sim.golden.oram.front import map_keys

SESSION_KEY, SEED = bytes(range(16)), bytes(range(100, 116))
EPOCH = 0xF123456789ABCDE7
SECRETS = Secrets(session_key=SESSION_KEY, seed=SEED, epoch=EPOCH)


def under(key, label, epoch):
    block = bytes([label, 0, 0, 0, 0, 0, 0, 0]) + bytes(epoch >> 8 * n & 0xFF for n in range(8))
    return Cipher(algorithms.AES128(key), modes.ECB()).encryptor().update(block)


@pytest.mark.parametrize("epoch", [0, 1, 1 << 32, EPOCH, (1 << 64) - 1])
def test_derivations(epoch):
    secrets = Secrets(session_key=SESSION_KEY, seed=SEED, epoch=epoch)
    assert map_keys(SEED, epoch) == tuple(under(SEED, label, epoch) for label in (1, 2, 3))
    assert secrets.session.key == under(SESSION_KEY, 4, epoch)
    assert secrets.session.confirm == under(SEED, 5, epoch)[:7]


def everything(secrets):
    return [*map_keys(secrets.seed, secrets.epoch), secrets.session.key, secrets.session.confirm]


def test_no_two_epochs_have_a_key_or_a_confirmation_in_common():
    """An epoch with one bit changed changes all of them; equal keys do not make equal working keys."""
    epochs = [EPOCH, *(EPOCH ^ 1 << bit for bit in range(64))]
    found = [everything(Secrets(session_key=SEED, seed=SEED, epoch=epoch)) for epoch in epochs]
    assert len(set(itertools.chain(*found))) == 5 * 65


def test_the_confirmation_is_the_seeds():
    other = Secrets(session_key=SESSION_KEY, seed=SESSION_KEY, epoch=EPOCH).session
    assert other.key == SECRETS.session.key
    assert other.confirm != SECRETS.session.confirm


def test_words():
    words = SECRETS.scalars
    assert list(words)[-1] == "lock", "behind the words that it locks"
    given = b"".join(word.to_bytes(4, "little") for word in list(words.values())[:-1])
    assert given == SESSION_KEY + SEED + EPOCH.to_bytes(8, "little")
    assert list(words)[3:9] == ["session_key3", "seed0", "seed1", "seed2", "seed3", "epoch0"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("session_key", bytes(15), "bytes of session_key must be 16, not 15"),
        ("seed", bytes(17), "bytes of seed must be 16, not 17"),
        ("epoch", 1 << 64, "epoch must be from 0 to 2^64 - 1, not 18446744073709551616"),
        ("epoch", -1, "epoch must be from 0 to 2^64 - 1, not -1"),
    ],
)
def test_refused(field, value, message):
    with pytest.raises(InputError) as refused:
        Secrets(**{"session_key": SESSION_KEY, "seed": SEED, "epoch": 0, field: value})
    assert str(refused.value) == message
