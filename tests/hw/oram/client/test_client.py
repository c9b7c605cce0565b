"""A client against the golden map: answers of a dict, rejected commands, lost maps, refused calls."""

import os
import random
import time
from functools import partial

import pytest

from hw.errors import InputError
from hw.oram.client.client import Client
from hw.oram.client.errors import (
    JournalError,
    LostMapError,
    MapFullError,
    NoAnswerError,
    RejectedError,
)
from hw.oram.client.operation import LOADING, Call, Finished, Operation
from hw.oram.client.session import ATTEMPTS, Session
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from tests.support.oram.golden_card import GoldenCard

CONFIG = OramConfig(log_n=8, value_bytes=16)
KEYS = {"master": bytes(range(32))}
A, B = b"a" * 16, b"b" * 16


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens a client, and closes the one before, as after the end of its process."""
    clients = []

    def give(card, *, timeout_s=5, **options):
        if clients:
            clients.pop().session.close()
        session = Session(tmp_path / "map", CONFIG, transport=card, **(KEYS | options))
        clients.append(Client(session, timeout_s=timeout_s))
        return clients[0]

    yield give
    for client in clients:
        client.session.close()


@pytest.mark.parametrize("changed", [0, 4])
def test_answers_are_those_of_a_dict(changed, opened):
    draw, known = random.Random(changed), {key: bytes([key] * 16) for key in range(40)}
    card = GoldenCard(CONFIG, slots=16, changes=lambda number: changed and number % changed == 1)
    client = opened(card, journal_bytes=4000)
    client.load(known.items())
    for _ in range(60):
        keys = [draw.randrange(60) for _ in range(draw.randint(1, 40))]
        match draw.choice(["get", "put", "delete"]):
            case "get":
                assert client.get_many(keys) == [known.get(key) for key in keys]
            case "put":
                items = {key: draw.randbytes(16) for key in keys}
                assert client.put_many(items) == [known.get(key) for key in items]
                known |= items
            case "delete":
                keys = [*dict.fromkeys(keys)]
                assert client.delete_many(keys) == [known.pop(key, None) for key in keys]
    assert client.put(2**64 - 1, A) is None
    assert client.get(2**64 - 1) == A
    assert client.delete(2**64 - 1) == A
    assert client.get_many([]) == []
    assert (card.engine.rejected > 0) == (changed > 0)
    card.check_nonces()
    assert {code for code, *_ in client.unfinished} == set()


def test_the_host_counts_operations_and_no_keys(opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    for call in (client.get_many, client.delete_many):
        for keys in ([1, 1, 1], [1, 2, 3]):
            count = card.engine.number
            call(keys)
            assert card.engine.number == count + 3


def test_a_call_is_repeated_with_its_number(opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([])
    assert client.put(1, A, number=7) is None
    for _ in range(2):
        count = card.engine.number
        assert client.put(1, A, number=7) is None
        assert card.engine.number == count  # not executed again
        client = opened(card)
    assert client.put(1, B, number=8) == A
    with pytest.raises(InputError, match="number must be at least 8, not 7"):
        client.put(1, A, number=7)
    with pytest.raises(InputError, match="those of the earlier call 8"):
        client.put(1, A, number=8)
    assert client.last_number == 8


def test_a_call_without_an_answer_is_finished_by_the_next(opened):
    card = GoldenCard(CONFIG)
    client = opened(card, timeout_s=0.01)
    client.load([(1, A)])
    card.silent = True
    for _ in range(2):
        with pytest.raises(NoAnswerError, match=r"no response for 0.01 s"):
            client.put_many({1: B, 2: B}, number=3)
        client = opened(card, timeout_s=0.01)
    assert [key for _, key, _ in client.unfinished] == [1, 2]
    card.silent = False
    assert client.get(1) == B
    assert client.unfinished == ()
    assert client.put_many({1: B, 2: B}) == [B, B]
    card.check_nonces()


def test_an_operation_is_given_up_after_some_rejections(opened):
    changed = range(3, 3 + ATTEMPTS)
    client = opened(GoldenCard(CONFIG, changes=lambda number: number in changed))
    client.load([(1, A), (2, A)])
    with pytest.raises(RejectedError, match="put of key 1: each of its commands was rejected"):
        client.put(1, B, number=1)
    with pytest.raises(RejectedError):
        client.put(1, B, number=1)
    assert client.get(1) == A
    assert client.put(1, B) == A


def test_a_map_that_is_full(opened):
    client = opened(GoldenCard(CONFIG, slots=64))
    client.load((key, A) for key in range(256))
    with pytest.raises(MapFullError, match="put of key 256 found no room"):
        client.put_many({0: B, 256: B})
    assert client.get_many([0, 256]) == [B, None]
    with pytest.raises(MapFullError):
        client.load((key, A) for key in range(257))
    with pytest.raises(InputError, match="items must be one for each key, not 'key 5 again'"):
        client.load([(5, A), (5, B)])
    with pytest.raises(LostMapError, match="not loaded"):
        client.get(1)


@pytest.mark.parametrize("journal_bytes", [1, 1 << 20])
def test_a_lost_map_is_loaded_again(journal_bytes, opened):
    """Unfinished calls are executed whole on the new map, also if the journal is written anew."""
    card = GoldenCard(CONFIG, slots=2)
    opened = partial(opened, journal_bytes=journal_bytes)
    client = opened(card)
    client.load([(1, A), (2, A)])
    client.put(2, B, number=1)
    card.silent = True
    client = opened(card, timeout_s=0.01)
    with pytest.raises(NoAnswerError):
        client.put_many({1: B, 3: B, 4: B}, number=2)
    card.reason = "status PAGE"
    for _ in range(2):
        with pytest.raises(LostMapError, match="the map is lost: status PAGE"):
            client.get(1)
        client = opened(card)
    card.silent = False
    client.load([(1, A), (2, A)])
    assert client.unfinished == ()
    assert LOADING not in client.session.state.last
    assert client.get_many([1, 2, 3, 4]) == [B, A, B, B]
    assert len(card.epochs) == 2
    card.check_nonces()


def test_a_finished_call_can_be_repeated_on_a_new_map(opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([])
    client.put(1, A, number=5)
    client.load([])  # its owner does not know of key 1
    assert client.put(1, A, number=5) is None
    assert client.get(1) == A


def test_a_load_that_is_interrupted_begins_again(opened):
    card = GoldenCard(CONFIG)
    client = opened(card, timeout_s=0.01)
    card.silent = True
    with pytest.raises(NoAnswerError):
        client.load([(1, A)])
    card.silent = False
    client = opened(card)
    assert not client.session.loaded
    with pytest.raises(LostMapError, match="the map is not loaded"):
        client.get(1)
    client.load([(2, A)])
    assert client.get_many([1, 2]) == [None, A]
    assert card.epochs[0] < card.epochs[1]


def test_an_old_copy_of_the_journal_seals_nothing(opened, tmp_path):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    old = (tmp_path / "map" / "journal").read_bytes()
    for _ in range(11):  # more than the ring has slots
        client.put(1, B)
    client.session.close()
    (tmp_path / "map" / "journal").write_bytes(old)
    client = opened(card)
    with pytest.raises(JournalError, match="an old copy: load a new map"):
        client.put(2, A)
    client.load([(1, B)])
    assert client.get(1) == B
    card.check_nonces()


def test_an_engine_with_another_seed_is_seen_in_its_first_response(opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    start = card.initialize
    card.initialize = lambda secrets: start(type(secrets)(**vars(secrets) | {"seed": bytes(16)}))
    with pytest.raises(LostMapError, match="another seed or epoch"):
        client.load([(1, A)])
    assert [number for _, number in card.texts] == [0]  # the NOP


def test_a_damaged_journal_needs_a_new_map(opened, tmp_path):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    client.get_many([1, 2])
    client.session.close()
    path = tmp_path / "map" / "journal"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(content)
    client = opened(card)
    with pytest.raises(JournalError, match="damaged at byte 0: load a new map"):
        client.get(1)
    client.load([(1, B)])
    assert client.get(1) == B
    assert card.epochs[0] < card.epochs[1]


def test_one_owner_at_a_time(opened, tmp_path):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    with pytest.raises(JournalError, match="in use by another process"):
        Session(tmp_path / "map", CONFIG, transport=card, **KEYS)
    pid = os.getpid()
    os.getpid = lambda: pid + 1  # as in a child after a fork
    try:
        with pytest.raises(JournalError, match="belongs to the process that opened it"):
            client.get(1)
    finally:
        os.getpid = lambda: pid
    assert client.get(1) == A


def test_after_an_interrupted_write_only_the_file_counts(opened, monkeypatch):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    sync = os.fsync

    def interrupted(descriptor):
        sync(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.put(1, B)
    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(JournalError, match="a write was interrupted: open the session again"):
        client.put(1, A)
    client = opened(card)
    assert [code for code, *_ in client.unfinished] == [Code.PUT]
    assert client.get(1) == B
    card.check_nonces()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda client: client.get(-1), r"key must be from 0 to 2\^64 - 1, not -1"),
        (lambda client: client.get(1 << 64), "key must be"),
        (lambda client: client.put(1, b"short"), "bytes of a value must be 16, not 5"),
        (lambda client: client.get(1, number=0), "number must be at least 1, not 0"),
        (lambda client: client.get_many([1] * 65_537), "operations must be at most 65536 in a call"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(call, message, opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([])
    with pytest.raises(InputError, match=message):
        call(client)
    assert len(card.texts) == 1  # the NOP


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"master": bytes(32)}, "is of another master key"),
        ({"master": bytes(15)}, "bytes of the master key must be at least 16, not 15"),
        ({"slots": 16}, "slots of a ring must be 8, as in"),
    ],
)
def test_a_journal_of_another_map_is_refused(change, message, opened):
    card = GoldenCard(CONFIG)
    opened(card).load([])
    card.slots = change.pop("slots", card.slots)
    with pytest.raises((JournalError, InputError), match=message):
        opened(card, **change)


def test_a_response_that_arrives_before_the_end_counts(opened):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([(1, A)])
    card.silent = True

    def end():
        """Answer at the moment of the look, and stop."""
        card.silent = False
        card.read(0)
        return "status BUS"

    card.ended = lambda: end() if client.session.state.sent else ""
    assert client.put(1, B) == A


def test_clients_of_one_session_may_repeat_calls_of_an_older_journal(opened):
    client = opened(GoldenCard(CONFIG), journal_bytes=1)
    client.load([(1, A)])
    session, put = client.session, [Operation(Code.PUT, 1, B)]
    assert isinstance(session.request(7, put, number=1), Call)
    client.finish()
    for _ in range(3):
        client.get(1)
    found = session.request(7, put, number=1)
    assert isinstance(found, Finished)
    assert [value for _, value in found.outcomes] == [A]


def test_epochs_rise_above_the_journals_too(opened, tmp_path, monkeypatch):
    card = GoldenCard(CONFIG)
    client = opened(card)
    client.load([])
    (tmp_path / "map" / "epochs").unlink()
    monkeypatch.setattr(time, "time_ns", lambda: 1_790_000_000 * 10**9 - 10**18 // 100)
    client.load([])
    assert card.epochs[1] > card.epochs[0]


def test_maps_under_one_key_share_epochs(tmp_path):
    cards = [GoldenCard(CONFIG) for _ in range(2)]
    for name, card in zip("ab", cards, strict=True):
        session = Session(tmp_path / name, CONFIG, transport=card, epochs=tmp_path / "epochs", **KEYS)
        with Client(session) as client:
            client.load([(1, A)])
            client.load([(1, A)])
    epochs = cards[0].epochs + cards[1].epochs
    assert epochs == sorted(set(epochs))
    assert not (tmp_path / "a" / "epochs").exists()


def test_a_map_that_does_not_begin_keeps_unfinished_calls(opened, monkeypatch):
    card = GoldenCard(CONFIG)
    client = opened(card, timeout_s=0.01)
    client.load([(1, A)])
    card.silent = True
    with pytest.raises(NoAnswerError):
        client.put(1, B)
    card.silent = False
    for failing in ("fsync", "initialize"):
        with monkeypatch.context() as context:
            context.setattr(os if failing == "fsync" else card, failing, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                client.load([(1, A)])
        client = opened(card)
        assert [key for _, key, _ in client.unfinished] == [1]
    client.load([(1, A)])
    assert client.get(1) == B
    card.check_nonces()
