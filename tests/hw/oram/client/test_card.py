"""Rings of a card in the client's process, and in one of the host's; the card is the golden map."""

import json
import sys
from pathlib import Path

import pytest

from hw.config import config_dict
from hw.errors import ToolError
from hw.oram.client.card import CardRings
from hw.oram.client.carry import HostProcess
from hw.oram.client.client import Client
from hw.oram.client.errors import LostMapError
from hw.oram.client.session import Session
from hw.oram.client.shared import SharedRings
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_structures, host_structures
from hw.oram.driver.sealing import stop_record
from tests.support.processes import ROOT

CONFIG = OramConfig(log_n=8, value_bytes=16, position_ports=4, record_ports=4)
FAKES = Path(__file__).parents[1] / "fakes"
KEYS = {"master": bytes(range(32))}
A, B = b"a" * 16, b"b" * 16


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Let XRT be the stand-in, whose kernel ends after 5 answers; return its file of calls."""
    monkeypatch.syspath_prepend(str(FAKES))
    monkeypatch.delitem(sys.modules, "pyxrt", raising=False)
    environ = {
        "FAKE_CONFIG": json.dumps(config_dict(CONFIG)),
        "FAKE_LOG": str(tmp_path / "log"),
        "FAKE_ANSWERS": "5",
        "PYTHONPATH": f"{FAKES}:{ROOT}",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    yield tmp_path / "log"
    sys.modules.pop("pyxrt", None)


def calls(log, name):
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [event[1:] for event in events if event[0] == name]


def test_a_stop_record_follows_the_last_command(log, tmp_path):
    rings = CardRings(CONFIG, tmp_path / "k.xclbin", slots=4)
    with Client(Session(tmp_path / "map", CONFIG, transport=rings, **KEYS)) as client:
        client.load([(1, A), (2, A), (3, A)])
    rings.stop()
    assert rings.commands[0].tobytes() == stop_record(CONFIG, 4).tobytes()
    rings.stop()  # the launch has ended
    assert rings.ended()


def test_a_card_in_the_clients_process(log, tmp_path):
    rings = CardRings(CONFIG, tmp_path / "k.xclbin", slots=4)
    assert rings.ended() == "no launch in this process"
    with Client(Session(tmp_path / "map", CONFIG, transport=rings, **KEYS)) as client:
        client.load([(1, A), (2, A)])
        assert rings.ended() == ""
        assert client.put(1, B) == A
        assert client.get(1) == B
        with pytest.raises(LostMapError, match="the map is lost: the kernel ended"):
            client.get(1)
        with pytest.raises(LostMapError, match="the card had a map: reset it"):
            client.load([])
    ((call,),) = calls(log, "call")
    expected = {"initialize": 1, "operation_count": 0, "ring_slots": 4, "finish": 1, "lock": 1}
    assert expected.items() <= call.items()
    position, records = hbm_structures(CONFIG)
    (pages,) = host_structures(CONFIG)
    ring = 4 * CONFIG.command_bytes
    assert [(size, flags) for size, flags, _ in calls(log, "bo")] == [
        *((size, "host_only") for size in (ring, ring, pages.total_bytes)),
        *4 * [(position.port_bytes, "normal")],
        *4 * [(records.port_bytes, "normal")],
    ]


def test_a_launch_that_xrt_gave_up_is_a_lost_map(log, tmp_path):
    rings = CardRings(CONFIG, tmp_path / "k.xclbin", slots=4)
    with Client(Session(tmp_path / "map", CONFIG, transport=rings, **KEYS), timeout_s=20) as client:
        client.load([(1, A), (2, A)])
        rings._call.state = lambda: "ert_cmd_state.ERT_CMD_STATE_ABORT"
        with pytest.raises(LostMapError, match="the map is lost: XRT ended it: ABORT"):
            client.get(1)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_card_in_the_hosts_process_outlives_its_client(stopped, log, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_ANSWERS", "6" if stopped else "5")  # the stand-in counts a stop record
    (tmp_path / "meta.json").write_text(json.dumps({"kernel": "k", "config": config_dict(CONFIG)}))
    module = [sys.executable, "-m", "hw.oram.client.carry", "k.xclbin", "--slots", "4"]
    host = HostProcess([*module, "--package", str(tmp_path), "--rings", str(tmp_path / "rings")])
    for life in range(3):
        rings = SharedRings(tmp_path / "rings", CONFIG, slots=4, load=host)
        with Client(Session(tmp_path / "map", CONFIG, transport=rings, **KEYS), timeout_s=20) as client:
            if life == 0:
                client.load([(1, A)])
            assert client.put(1, bytes([life] * 16)) == (bytes([life - 1] * 16) if life else A)
    client = Client(Session(tmp_path / "map", CONFIG, transport=rings, **KEYS), timeout_s=20)
    if stopped:
        host.process.terminate()
    reason = "the host's process ended" if stopped else "the kernel ended"
    with client, pytest.raises(LostMapError, match=reason):
        client.get(1)
    assert host.process.wait() == 0


@pytest.mark.parametrize(
    ("environ", "message"),
    [({"FAKE_NOT": "gone"}, "XRT cannot load k.xclbin on card 0: gone"), (None, "No module named 'pyxrt'")],
)
def test_what_is_missing_is_one_line(environ, message, log, monkeypatch):
    for name, value in (environ or {}).items():
        monkeypatch.setenv(name, value)
    if environ is None:
        monkeypatch.setitem(sys.modules, "pyxrt", None)
        message = "pyxrt"
    rings = CardRings(CONFIG, Path("k.xclbin"))
    secrets = type("Secrets", (), {"scalars": {}})
    with pytest.raises(ToolError, match=message):
        rings.initialize(secrets)
