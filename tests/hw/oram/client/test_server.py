"""Several clients of one map: one queue, ends of clients and of the server, a lost map."""

import contextlib
import random
import socket
import struct
import threading
import time

import pytest

from hw.oram.client import messages
from hw.oram.client.client import Client
from hw.oram.client.errors import LostMapError, MapFullError, NoAnswerError, SessionError
from hw.oram.client.remote import RemoteClient
from hw.oram.client.server import MapServer
from hw.oram.client.session import Session
from hw.oram.config import OramConfig
from tests.support.oram.golden_card import GoldenCard

CONFIG = OramConfig(log_n=8, value_bytes=8)
KEYS = {"master": bytes(range(32))}
A, B, C = b"a" * 8, b"b" * 8, b"c" * 8


class Running:
    """A server in a thread; `stop` and `start` are its end and its restart."""

    def __init__(self, folder, card, **options):
        self.folder, self.card, self.options = folder, card, {"timeout_s": 5} | options
        self.path = folder / "socket"
        self.start()

    def start(self):
        self.session = Session(self.folder / "map", CONFIG, transport=self.card, journal_bytes=5000, **KEYS)
        if not self.session.loaded and "source" not in self.options:
            Client(self.session).load([(1, A)])
        self.ends = threading.Event()
        server = MapServer(self.session, self.path, **self.options)
        self.thread = threading.Thread(target=server.serve, args=(self.ends.is_set,))
        self.thread.start()

    def stop(self):
        self.ends.set()
        self.thread.join()
        self.session.close()


@pytest.fixture
def serve(tmp_path):
    running = []

    def give(card, **options):
        running.append(Running(tmp_path, card, **options))
        return running[0]

    yield give
    running[0].stop()
    running[0].card.check_nonces()


def work(path, origin, calls, failures):
    """Use keys of one's own and compare with a dict; read others' keys too."""
    try:
        draw, known = random.Random(origin), {}
        with RemoteClient(path, origin=origin) as client:
            for _ in range(calls):
                keys = [origin << 32 | draw.randrange(6) for _ in range(draw.randint(1, 8))]
                if draw.randrange(2):
                    items = {key: draw.randbytes(8) for key in keys}
                    assert client.put_many(items) == [known.get(key) for key in items]
                    known |= items
                else:
                    assert client.get_many([*keys, 1]) == [*map(known.get, keys), A]
    except BaseException as error:
        failures.append(error)


def test_clients_share_a_map_and_survive_restarts_of_its_server(serve):
    running, failures = serve(GoldenCard(CONFIG, slots=16, changes=lambda number: number % 9 == 8)), []
    threads = [threading.Thread(target=work, args=(running.path, n, 40, failures)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.05)
        running.stop()
        running.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert running.card.engine.rejected > 0
    assert running.session._journal.size_bytes < 10_000  # written anew at 5,000


def test_a_client_repeats_its_call_after_its_own_end(serve):
    running = serve(GoldenCard(CONFIG))
    running.card.silent = True
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(running.path))
    messages.send(connection, messages.HELLO.pack(b"H", 7))
    assert messages.receive(connection)[:1] == b"W"
    put = struct.pack("<cQBQ8s", b"C", 1, 2, 5, B)
    messages.send(connection, put)
    while not running.session.state.calls:
        time.sleep(0.001)
    connection.close()
    running.card.silent = False
    with RemoteClient(running.path, origin=7) as client:
        assert client.last_number == 1
        assert client.put(5, B, number=1) is None
        assert client.put(5, C, number=2) == B
        with pytest.raises(SessionError, match="number must be at least 2, not 1"):
            client.put(5, B, number=1)
    with RemoteClient(running.path) as client:
        assert client.get_many([5, 1]) == [C, A]
        assert client._origin in running.session.state.last
    while client._origin in running.session.state.last:  # forgotten when it left
        time.sleep(0.001)
    assert 7 in running.session.state.last


def test_a_second_connection_of_an_origin_ends_the_first(serve):
    running = serve(GoldenCard(CONFIG))
    with RemoteClient(running.path, origin=9) as first, RemoteClient(running.path, origin=9) as second:
        assert second.get(1) == A
        first._socket.settimeout(20)
        assert first._socket.recv(1) == b""


def test_errors_reach_the_client(serve):
    running = serve(GoldenCard(CONFIG, slots=64))
    with RemoteClient(running.path) as client:
        with pytest.raises(MapFullError, match="put of key 256 found no room"):
            client.put_many(dict.fromkeys([*range(2, 256), 0, 256], B))
        assert client.get(2) == B
        running.card.reason = "status BUS"
        with pytest.raises(LostMapError, match="the map is lost: status BUS"):
            client.get(1)


def test_no_answer_is_an_error_and_the_call_goes_on(serve):
    running = serve(GoldenCard(CONFIG), timeout_s=0.05)
    running.card.silent = True
    with RemoteClient(running.path) as client:
        with pytest.raises(NoAnswerError):
            client.put(1, B)
        with pytest.raises(NoAnswerError):  # behind the one before
            client.get(1)
        running.card.silent = False
        assert client.get(1) == B


def test_a_lost_map_is_loaded_from_its_source(serve):
    running = serve(GoldenCard(CONFIG, slots=2), source=lambda: [(1, C), (2, C)])
    while not running.session.loaded:  # by its server
        time.sleep(0.001)
    with RemoteClient(running.path, origin=3) as client:
        assert client.get(1) == C
        running.card.reason = "status PAGE"
        assert client.put_many({1: B, 2: B, 3: B}) == [C, C, None]
        assert client.get_many([1, 2, 3]) == [B, B, B]
    assert len(running.card.epochs) == 2


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"X",
        b"H123",
        struct.pack("<cQ", b"C", 1),
        struct.pack("<cQBQ7s", b"C", 1, 2, 5, B),  # a short value
        struct.pack("<cQBQ8s", b"C", 1, 9, 5, B),  # no such code
        struct.pack("<cQBQ8s", b"C", 1, 4, 5, B),  # LOAD is the owner's
    ],
)
@pytest.mark.parametrize("greeted", [True, False])
def test_wrong_messages_harm_nobody(message, greeted, serve):
    running = serve(GoldenCard(CONFIG))
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(20)
        connection.connect(str(running.path))
        if greeted:
            messages.send(connection, messages.HELLO.pack(b"H", 7))
            assert messages.receive(connection)[:1] == b"W"
        messages.send(connection, message)
        with contextlib.suppress(ConnectionError):
            assert messages.receive(connection)[:1] == b"E"
    with RemoteClient(running.path) as client:
        assert client.get(1) == A
    assert running.session.state.calls == []


def test_a_server_that_stays_away(tmp_path):
    with pytest.raises(NoAnswerError, match=r"no server at .* for 0.05 s"):
        RemoteClient(tmp_path / "socket", timeout_s=0.05)
