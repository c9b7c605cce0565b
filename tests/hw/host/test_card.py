"""Launches on a card: many, of several kernels, late, faulty, and refused ones."""

import gc
import json

import numpy as np
import pytest

import loomwork_host
from hw.lib.arguments import POINTER_ALIGN_BYTES, STATUS_BUS
from loomwork_host import card as card_module
from tests.hw.host.conftest import WORDS, summands, write_vadd

#: Byte offsets of vadd's registers.
STATUS, CYCLES_TOTAL = 0x438, 0x400


def test_many_launches_of_other_tensors(card):
    stand, folder = card
    rng = np.random.default_rng(1)
    with stand.open() as opened:
        call = opened.load(folder)
        assert {name: each.shape for name, each in call.inputs.items()} == {"a": (WORDS,), "b": (WORDS,)}
        for _ in range(20):
            given = summands(rng)
            found = call.run(**given)
            assert list(found) == ["c"]
            assert found["c"].dtype == np.int32
            np.testing.assert_array_equal(found["c"], given["a"] + given["b"])


def test_buffers_are_allocated_once_and_unchanged_ones_written_once(stand, vadd, tmp_path):
    """Of a third buffer without a tensor the content stays on the card, as weights do."""
    xrt, folder = stand("xrt"), write_vadd("xrt", tmp_path / "card")
    manifest = json.loads((folder / "launch.json").read_text())
    manifest["tensors"] = [entry for entry in manifest["tensors"] if entry["name"] != "b"]
    arrays = dict(np.load(folder / "tensors.npz"))
    arrays = {key.replace("2.", "1."): array for key, array in arrays.items() if not key.startswith("1.")}
    np.savez(folder / "tensors.npz", **arrays)
    (folder / "launch.json").write_text(json.dumps(manifest))
    b = np.fromfile(folder / "buffers" / "b.bin", "<i4")
    with xrt.open() as opened:
        call = opened.load(folder)
        for seed in range(5):
            a = summands(np.random.default_rng(seed))["a"]
            np.testing.assert_array_equal(call.run(a=a)["c"], a + b)
    assert len(xrt.events("bo")) == 3
    # The folder's content of both, then a alone.
    assert len([event for event in xrt.events("sync") if event[1] == "to"]) == 2 + 5


def test_the_folder_s_own_tensors_and_those_before_are_repeated(card):
    stand, folder = card
    given = np.load(f"{folder}.npz")
    with stand.open() as opened:
        call = opened.load(folder)
        np.testing.assert_array_equal(call.run()["c"], given["a"] + given["b"])
        given = summands(np.random.default_rng(5))
        for _ in range(2):
            np.testing.assert_array_equal(call.run(given)["c"], given["a"] + given["b"])
            np.testing.assert_array_equal(call.run()["c"], given["a"] + given["b"])


def test_several_kernels_at_once(stand, vadd, tmp_path, monkeypatch):
    """Both are started before either is waited for; each has its buffers, its registers, its results."""
    xrt, folder = stand("xrt"), write_vadd("xrt", tmp_path / "card")
    with xrt.open() as opened:
        calls = [opened.load(folder, instance=name) for name in ("vadd_1", "vadd_2")]
        given = [summands(np.random.default_rng(seed)) for seed in range(2)]
        launches = [call.submit(**each) for call, each in zip(calls, given, strict=True)]
        for launch, each in zip(launches, given, strict=True):
            np.testing.assert_array_equal(launch.wait()["c"], each["a"] + each["b"])
            assert launch.counters["cycles_total"] == 7 << 32 | 0x1000 + CYCLES_TOTAL
        calls[0].run()
    # The card lets go of the kernels, though a program still has their launches.
    assert len(xrt.events("kernel")) == len(xrt.events("kernel gone")) == 3
    names = [event[1] for event in xrt.events("kernel")]
    assert names[:2] == ["loomwork_vadd:{vadd_1}", "loomwork_vadd:{vadd_2}"]
    order = [event[0] for event in xrt.events("call", "wait")]
    assert order[:4] == ["call", "call", "wait", "wait"]


def test_several_instances_on_a_board(stand, vadd, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_IPS", "vadd_1,block/vadd_2")
    pynq, folder = stand("pynq"), write_vadd("pynq", tmp_path / "card")
    with pynq.open() as opened:
        with pytest.raises(
            loomwork_host.CardError, match=r"^the bitstream must have one loomwork_vadd, not 2$"
        ):
            opened.load(folder)
        calls = [opened.load(folder, instance=name) for name in ("vadd_1", "block/vadd_2")]
        given = [summands(np.random.default_rng(seed)) for seed in range(2)]
        launches = [call.submit(each) for call, each in zip(calls, given, strict=True)]
        for launch, each in zip(launches, given, strict=True):
            np.testing.assert_array_equal(launch.wait()["c"], each["a"] + each["b"])


def test_calls_of_one_instance_share_it(card, tmp_path):
    stand, folder = card
    other = write_vadd(stand.backend, tmp_path / "other", words=8)
    with stand.open() as opened:
        first, second = opened.load(folder), opened.load(other)
        launch = first.submit()
        with pytest.raises(loomwork_host.BusyError, match=r"^loomwork_vadd has a launch of .*card under way"):
            second.submit()
        launch.wait()
        given = summands(np.random.default_rng(2), 8)
        np.testing.assert_array_equal(second.run(given)["c"], given["a"] + given["b"])
        # Registers are those of the last launch, results were read at the end.
        with pytest.raises(
            loomwork_host.BusyError, match="counters of a launch must be read before the next"
        ):
            _ = launch.counters
        assert launch.wait()["c"].size == WORDS


def test_counters_are_read_when_asked_for(stand, vadd, tmp_path):
    xrt, folder = stand("xrt"), write_vadd("xrt", tmp_path / "card")
    with xrt.open() as opened:
        launch = opened.load(folder).submit()
        with pytest.raises(loomwork_host.BusyError, match="counters of a launch must be read after its end"):
            _ = launch.counters
        launch.wait()
        # The status alone is looked at, after the binding let go of the kernel.
        assert [event[1] for event in xrt.events("read")] == [STATUS, STATUS + 4]
        order = [event[0] for event in xrt.events("kernel gone", "xrtPLKernelOpenExclusive")]
        assert order == ["kernel gone", "xrtPLKernelOpenExclusive"]
        assert launch.counters["gmem0_read_bytes"] == 7 << 32 | 0x1420
        assert launch.counters["status"] == 0
        assert len(xrt.events("read")) == 2 + 2 * 8
    assert xrt.events()[-1] == ["xrtDeviceClose", 1]


def test_a_late_launch_is_waited_for_again(card, monkeypatch):
    stand, folder = card
    setting, value = ("FAKE_STATE", "RUNNING") if stand.backend == "xrt" else ("FAKE_HANGS", "1")
    monkeypatch.setenv(setting, value)
    with stand.open() as opened:
        call = opened.load(folder)
        launch = call.submit()
        assert not launch.done()
        with pytest.raises(
            loomwork_host.LateError, match=r"^loomwork_vadd was not done after 0.02 s$"
        ) as late:
            launch.wait(timeout_s=0.02)
        assert isinstance(late.value, TimeoutError)
        with pytest.raises(loomwork_host.BusyError):
            call.submit()
        with pytest.raises(loomwork_host.InputError, match=r"^timeout_s must be above 0, not 0$"):
            launch.wait(timeout_s=0)
        monkeypatch.delenv(setting)
        if stand.backend == "pynq":
            opened.device.overlay.vadd_0.done = 2
        assert launch.done()
        assert launch.wait()["c"].size == WORDS
        assert launch.seconds > 0
        call.run()


@pytest.mark.soak
def test_buffers_of_a_launch_under_way_are_not_released(stand, vadd, tmp_path, monkeypatch):
    """The kernel would write into memory of others."""
    pynq, folder = stand("pynq"), write_vadd("pynq", tmp_path / "card")
    with pynq.open() as opened:
        opened.load(folder).run()
    assert not pynq.module.BUFFERS
    monkeypatch.setenv("FAKE_HANGS", "1")
    with pynq.open() as opened:
        launch = opened.load(folder).submit()
        with pytest.raises(loomwork_host.LateError):
            launch.wait(timeout_s=0.01)
    del opened, launch
    gc.collect()
    assert len(pynq.module.BUFFERS) == 3


def test_a_launch_that_xrt_ends(stand, vadd, tmp_path, monkeypatch):
    xrt, folder = stand("xrt"), write_vadd("xrt", tmp_path / "card")
    monkeypatch.setenv("FAKE_STATE", "ABORT")
    with xrt.open() as opened:
        call = opened.load(folder)
        launch = call.submit()
        assert launch.done()
        for _ in range(2):
            with pytest.raises(
                loomwork_host.FailedError, match=r"^loomwork_vadd did not complete: ABORT$"
            ) as failed:
                launch.wait()
            assert failed.value.state == "ABORT"
        monkeypatch.delenv("FAKE_STATE")
        call.run()


@pytest.mark.parametrize(
    ("status", "text"), [(STATUS_BUS, "a memory answered"), (8, "loomwork_vadd stopped")]
)
def test_a_fault_of_the_kernel(card, monkeypatch, status, text):
    stand, folder = card
    monkeypatch.setenv("FAKE_STATUS", str(status))
    with stand.open() as opened:
        call = opened.load(folder)
        with pytest.raises(loomwork_host.FaultError, match=f"^{text}.* status {status}") as fault:
            call.run()
        assert (fault.value.status, fault.value.counters["status"]) == (status, status)
        assert fault.value.counters["cycles_total"] & 0xFFFF == 0x1400
        monkeypatch.setenv("FAKE_STATUS", "0")
        assert call.run()["c"].size == WORDS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": None}, f"tensor b must be given, of shape ({WORDS},), not 'missing'"),
        ({"d": 1}, "tensor must be one of a, b, not 'd'"),
        ({"a": np.zeros(3, np.int32)}, f"shape of a must be ({WORDS},), not (3,)"),
        ({"a": np.zeros(WORDS)}, "type of a must be int32, not 'float64'"),
        ({"a": np.full(WORDS, 2**31)}, "a must be from -2147483648 to 2147483647, not 2147483648"),
        ({"a": ["x"] * WORDS}, "type of a must be int32, not '<U1'"),
    ],
)
def test_tensors_that_are_refused(card, change, message):
    """Nothing is written: the launch after it has the tensors before it."""
    stand, folder = card
    given = summands(np.random.default_rng(3))
    with stand.open() as opened:
        call = opened.load(folder)
        call.run(given)
        wrong = {
            name: value for name, value in {**given, "a": given["b"], **change}.items() if value is not None
        }
        with pytest.raises(loomwork_host.InputError) as refused:
            call.run(wrong)
        assert str(refused.value) == message
        assert isinstance(refused.value, ValueError)
        np.testing.assert_array_equal(call.run()["c"], given["a"] + given["b"])


def test_whole_numbers_of_another_type_and_a_first_dimension(card):
    stand, folder = card
    given = summands(np.random.default_rng(4))
    with stand.open() as opened:
        found = opened.load(folder).run(a=given["a"].astype(np.int64)[None], b=given["b"].astype(">i4"))
        np.testing.assert_array_equal(found["c"], given["a"] + given["b"])


@pytest.mark.parametrize(
    ("image", "options", "error", "message"),
    [
        ("k.bin", {}, "InputError", "suffix of the image must be one of .xclbin, .bit, not '.bin'"),
        ("k.xclbin", {"backend": "cuda"}, "InputError", "backend must be one of xrt, pynq, not 'cuda'"),
        ("k.bit", {"device": 1}, "CardError", "a board has device 0 alone, and no device 1"),
    ],
)
def test_images_that_are_refused(image, options, error, message):
    with pytest.raises(getattr(loomwork_host, error)) as refused:
        loomwork_host.open(image, **options)
    assert str(refused.value) == message


def test_a_card_that_refuses(card, monkeypatch):
    stand, folder = card
    monkeypatch.setenv("FAKE_NOT", "gone")
    what = "XRT cannot load k.xclbin on card 0" if stand.backend == "xrt" else "PYNQ cannot load k.bit"
    with pytest.raises(loomwork_host.CardError, match=f"^{what}: gone$"):
        stand.open()
    monkeypatch.delenv("FAKE_NOT")
    with stand.open() as opened:
        monkeypatch.setenv("FAKE_ROOM", "100")
        with pytest.raises(loomwork_host.CardError, match=r"cannot allocate 160 bytes for a: "):
            opened.load(folder)
        monkeypatch.delenv("FAKE_ROOM")
        monkeypatch.setenv("FAKE_OFFSET", "64")
        with pytest.raises(loomwork_host.CardError, match="which is no multiple of 4096"):
            opened.load(folder)
        monkeypatch.delenv("FAKE_OFFSET")
        call = opened.load(folder)
    with pytest.raises(loomwork_host.CardError, match=r"card was closed$"):
        call.submit()


def test_a_kernel_that_xrt_does_not_open(stand, vadd, tmp_path, monkeypatch):
    xrt, folder = stand("xrt"), write_vadd("xrt", tmp_path / "card")
    monkeypatch.setenv("FAKE_REFUSES", "open")
    with xrt.open() as opened:
        message = r"^XRT cannot open the kernel loomwork_vadd:\{v\}: no compute unit of this name$"
        with pytest.raises(loomwork_host.CardError, match=message):
            opened.load(folder, instance="v")


def test_a_package_of_another_kernel(card, tmp_path):
    stand, folder = card
    manifest = json.loads((folder / "launch.json").read_text())
    meta = {
        "kernel": "loomwork_vadd",
        "config_hash": manifest["config_hash"],
        "arguments": [{"name": each["name"], "offset": each["offset"]} for each in manifest["arguments"]],
        "counters": [{"name": name, "offset": offset} for name, offset in manifest["counters"].items()],
    }
    with stand.open() as opened:
        for change, message in (
            ({}, None),
            ({"config_hash": "0" * 12}, "^launch .* must be one for loomwork_vadd of configuration 0{12}"),
            (
                {"arguments": meta["arguments"][1:]},
                "^arguments of .*launch.json must be b, c, words, not 'a, b",
            ),
            ({"counters": []}, "^counters of .*launch.json must be "),
        ):
            (tmp_path / "meta.json").write_text(json.dumps(meta | change))
            if message is None:
                opened.load(folder, package=tmp_path).run()
            else:
                with pytest.raises(loomwork_host.InputError, match=message):
                    opened.load(folder, package=tmp_path)
        (tmp_path / "meta.json").unlink()
        with pytest.raises(loomwork_host.InputError, match=r"^package must be one of `loomwork verilog`"):
            opened.load(folder, package=tmp_path)


def test_damaged_places_are_refused(card):
    stand, folder = card
    (folder / "tensors.npz").write_bytes(b"short")
    with stand.open() as opened:
        with pytest.raises(loomwork_host.InputError, match="places of tensors must be whole"):
            opened.load(folder)
        (folder / "tensors.npz").unlink()
        with pytest.raises(loomwork_host.InputError, match="places of tensors must be whole"):
            opened.load(folder)


def test_the_library_knows_the_numbers_of_the_kernels():
    assert POINTER_ALIGN_BYTES == card_module.ALIGN_BYTES
    assert STATUS_BUS == card_module._STATUS_BUS
