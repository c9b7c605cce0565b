"""Keys of an epoch, against another implementation of their rule."""

import hashlib
import hmac

from hw.oram.client.state import mark_of, secrets_of


def keyed(master, text, epoch):
    return hmac.new(master, text + epoch.to_bytes(8, "little"), hashlib.sha256).digest()


def test_keys_of_an_epoch():
    found = set()
    for master in (bytes(32), bytes(31) + b"\1"):
        for epoch in (1, 2, 1 << 63):
            secrets = secrets_of(master, epoch)
            assert secrets.session_key == keyed(master, b"loomwork session key", epoch)[:16]
            assert secrets.seed == keyed(master, b"loomwork seed", epoch)[:16]
            assert secrets.epoch == epoch
            assert mark_of(master, epoch) == keyed(master, b"loomwork journal", epoch)[:8]
            found |= {secrets.session_key, secrets.seed, mark_of(master, epoch)}
    assert len(found) == 18
