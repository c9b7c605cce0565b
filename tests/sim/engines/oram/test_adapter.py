"""Operations to a launch and back: content of the buffers, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.buffers import board_arguments, swap_halves
from hw.oram.driver.operations import UNVERIFIED
from hw.oram.driver.sealing import open_commands, seal_responses
from hw.oram.kernel.arguments import Fault, argument_table
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL, random_operations
from sim.engines.oram.job import simulation_secrets
from sim.golden.oram.image import bucket_images, record_images, sealed_pages
from sim.run.layout import place_buffers, register_writes
from sim.run.run import compare
from tests.support.oram.images import open_page, parse_record
from tests.support.oram.tampers import flip, replay, swap, truncate
from tests.support.oram.workloads import answers

BOARD = load_board("u55c")
CONFIGS = [
    SMALL,
    replace(SMALL, touch="both", pad="always", value_bytes=64),
    replace(SMALL, record_ports=16, position_ports=2, key_bits=32, value_bytes=384, mac_bits=64),
]


@pytest.fixture(params=CONFIGS, ids=["one", "both", "wide"])
def config(request):
    return request.param


@pytest.fixture
def tensors(config):
    return random_operations(np.random.default_rng(7), config, 150)


@pytest.fixture
def job(config, tensors):
    return ADAPTER.job(tensors, config)


def memory_of(job, records):
    """Return the buffers of a correct kernel, with noise in undefined bytes."""
    config, rng = job.config, np.random.default_rng(1)
    state, buffers = job.played.state, {"responses": records.reshape(-1)}
    buffers["pages"] = sealed_pages(state, job.page_gcm, range(config.host_pages)).reshape(-1)
    hbm = [record_images(state, range(config.records))]
    hbm += [bucket_images(state, table, range(config.buckets)) for table in range(2)]
    half = config.position_ports // 2
    slices = [("records", 0, config.record_ports), ("position", 0, half), ("position", half, half)]
    for (images, care), (name, first, ports) in zip(hbm, slices, strict=True):
        images = np.where(care, images, rng.integers(256, size=images.shape, dtype=np.uint8))
        for port in range(ports):
            lines = images[port::ports]
            missing = -(-len(images) // ports) - len(lines)
            argument = f"{name}{first + port}"
            lines = np.pad(lines, ((0, missing), (0, 0)))
            buffers[argument] = swap_halves(board_arguments(config)[argument], lines).reshape(-1)
    return buffers


def test_operations_are_answered_as_by_a_dict(config, tensors, job):
    golden = ADAPTER.golden(job, config)
    rows = zip(
        tensors["codes"].tolist(),
        tensors["keys"].tolist(),
        map(np.ndarray.tobytes, tensors["values"]),
        tensors["rejected"].tolist(),
        strict=True,
    )
    expected = list(answers(rows, config, {}))
    results = ADAPTER.results(job, config, golden)
    assert results["statuses"].tolist() == [status for status, _, _ in expected]
    assert results["keys"].tolist() == [key for _, key, _ in expected]
    assert results["values"].tobytes() == b"".join(value for _, _, value in expected)
    assert set(results["statuses"]) == set(Status)
    np.testing.assert_array_equal(results["codes"], tensors["codes"])


def test_the_launch_is_what_the_table_asks_for(config, job):
    launch, table = ADAPTER.launch(job, config, BOARD), argument_table(config)
    placement = {port: int(port.removeprefix("gmem")) if port[0] == "g" else 0 for port in table.ports}
    register_writes(launch, table, place_buffers(launch, table, placement, BOARD))
    count = len(job.operations)
    assert launch.scalars["operation_count"] == count
    assert count <= launch.scalars["ring_slots"] < 2 * count
    secrets = job.secrets.scalars
    assert {name: launch.scalars[name] for name in secrets} == secrets
    assert [a.name for a in table.secrets] == list(secrets)[:-1]
    commands = launch.buffers[0].data.reshape(count, -1)
    opened = open_commands(config, job.secrets.session, commands)
    np.testing.assert_array_equal(opened.genuine, ~job.rejected)
    assert np.any(job.rejected)
    right = opened.genuine
    np.testing.assert_array_equal(opened.results.keys[right], job.operations.keys[right])
    quiet = ADAPTER.launch(replace(job, state=False), config, BOARD)
    assert [buffer.argument for buffer in quiet.buffers if buffer.output] == ["responses"]


def test_a_right_kernels_buffers_are_the_golden_models(config, job):
    golden = ADAPTER.golden(job, config)
    buffers = memory_of(job, golden["responses"])
    assert compare(ADAPTER.outputs(job, config, buffers), golden) == ()


def test_of_responses_with_a_wrong_tag_nothing_is_read(job):
    """A card with another key or seed, one changed bit, one number: the decrypted text is withheld."""
    config = job.config
    records = ADAPTER.golden(job, config)["responses"]
    assert ADAPTER.unverified(job, config, {"responses": records.reshape(-1)}) == ()
    session = job.secrets.session
    foreign = [replace(session, **one) for one in ({"key": bytes(16)}, {"confirm": bytes(7)})]
    unconfirmed = "confirmation of keys and epoch of response 0 is wrong, and of 421 others"
    for changed, line in (
        (seal_responses(config, foreign[0], job.results), "tag of response 0 is wrong, and of 421 others"),
        (seal_responses(config, foreign[1], job.results), unconfirmed),
        (records.copy(), "tag of response 3 is wrong: none of these is read"),
        (records.copy(), "number, 259, of response 3 is wrong: none"),
    ):
        if line.startswith("tag of response 3"):
            changed[3, 40] ^= 1
        elif line.startswith("number"):
            changed[3, 1] ^= 1
        buffers = {"responses": changed.reshape(-1)}
        (said,) = ADAPTER.unverified(job, config, buffers)
        assert said.startswith(line)
        found = ADAPTER.outputs(replace(job, state=False), config, buffers)
        wrong = found["statuses"] == UNVERIFIED
        assert wrong.tolist() == (
            [True] * len(wrong) if "others" in line else [n == 3 for n in range(len(wrong))]
        )
        assert not found["keys"][wrong].any()
        assert not found["values"][wrong].any()


@pytest.mark.parametrize(
    ("argument", "byte", "name"),
    [
        ("responses", 40, "responses"),
        ("responses", 8, "responses"),
        ("pages", -1, "pages"),
        ("records0", 0, "records"),
        ("position0", 0, "table0"),
        ("position1", 1, "table1"),
    ],
)
def test_one_wrong_byte_is_found(argument, byte, name):
    config = CONFIGS[2]
    job = ADAPTER.job(random_operations(np.random.default_rng(7), config, 40), config)
    golden = ADAPTER.golden(job, config)
    buffers = memory_of(job, golden["responses"].copy())
    buffers[argument][byte] ^= 1
    assert any(line.startswith(name) for line in compare(ADAPTER.outputs(job, config, buffers), golden))


def test_every_item_is_where_the_images_say(config, job):
    """The compared state is that of the map: all keys are found in pages, records and overflow."""
    golden, state = ADAPTER.golden(job, config), job.played.state
    found = [item.key for _, item in filter(None, state.overflow)]
    for record, image in enumerate(golden["records"]):
        version, items, slots = parse_record(config, image)
        found += [key for key, _ in filter(None, slots)]
        if record < config.host_pages:
            page = open_page(config, job.page_gcm, record, version, golden["pages"][record])
            assert items == config.slots - page.count(None)
            found += [key for key, _ in filter(None, page)]
    assert len(found) == len(set(found)) == len(state.position.entries)


def test_keys_of_simulations_follow_from_the_seed():
    assert simulation_secrets(3) == simulation_secrets(3)
    found = [(x.session_key, x.seed, x.epoch) for x in map(simulation_secrets, (3, 2**32 - 1))]
    assert len(set(sum(found, ()))) == 6
    assert all(epoch >> 32 and epoch % 2**32 for _, _, epoch in found)


def test_the_workload_is_what_the_host_sees(config, job):
    workload = ADAPTER.workload(job, config)
    assert workload.operations == len(job.operations)
    assert len(workload.pages) == workload.operations * config.items
    writes = sum(page is not None for page in workload.pages)
    assert writes == sum(job.played.state.writes.values())


def test_what_a_host_does_to_pages(config):
    size, page = config.page_bytes, config.host_pages // 2
    for rows, changed in (
        (flip(config, page, 1, 5, 3), [page]),
        (swap(config, page, 0, 0), [0, page]),
        (truncate(config, page, 0, size - 8), [page]),
        (replay(config, page, 2), [page]),
    ):
        given = {"codes": np.array([Code.NOP]), "keys": np.zeros(1, int), "tampers": rows}
        given["values"] = np.zeros((1, config.value_bytes), int)
        launch = ADAPTER.launch(ADAPTER.job(given, config), config, BOARD)
        (pages,) = [buffer for buffer in launch.buffers if buffer.argument == "pages"]
        assert all((tamper.argument, tamper.read) == ("pages", page * size) for tamper in launch.tampers)
        within = {tamper.to // size for tamper in launch.tampers if tamper.to < pages.size_bytes}
        assert sorted(within) == changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": np.zeros(3)}, "tensor name must be one of codes, keys"),
        ({"codes": None}, "tensors must be such that codes is among them"),
        ({"codes": np.zeros(0, int)}, r"shape of codes must be \[n\], of an operation at least"),
        ({"codes": np.zeros(3)}, "dtype of codes must be a type of whole numbers, not 'float64'"),
        ({"codes": np.array([0, 256, 0])}, r"codes must be from 0 to 2\^8 - 1, not 256"),
        ({"keys": np.array([0, 1, -1])}, r"keys must be from 0 to 2\^32 - 1, not -1"),
        ({"keys": np.array([0, 1, 1 << 32])}, r"keys must be from 0 to 2\^32 - 1, not 4294967296"),
        ({"keys": np.zeros(2, int)}, r"shape of keys must be \[3\], not \[2\]"),
        ({"values": np.zeros((3, 8), int)}, r"shape of values must be \[3, 384\], not \[3, 8\]"),
        ({"rejected": np.zeros(4, bool)}, r"shape of rejected must be \[3\]"),
        ({"seed": np.array(-1)}, r"seed must be from 0 to 2\^32 - 1, not -1"),
        ({"tampers": np.zeros((1, 5), int)}, r"shape of tampers must be \[m, 6\]"),
    ],
)
def test_wrong_tensors_are_refused(changes, message):
    config = CONFIGS[2]
    given = {"codes": np.zeros(3, int), "keys": np.zeros(3, int), "values": np.zeros((3, 384), np.uint8)}
    given = {name: tensor for name, tensor in (given | changes).items() if tensor is not None}
    with pytest.raises(InputError, match=message):
        ADAPTER.job(given, config)


def test_a_map_that_would_stop_is_refused():
    config = replace(SMALL, slots=4, list_slots=4, overflow_entries=4)
    job = ADAPTER.job(random_operations(np.random.default_rng(7), config, 40), config)
    with pytest.raises(InputError, match=r"overflow_entries must be more \(operation"):
        ADAPTER.workload(job, config)


def test_the_regression_has_every_touch_and_pad_and_ends():
    cases = list(ADAPTER.cases())
    assert {case.memory for case in cases if not case.soak} == {"model"}
    assert {case.memory for case in cases} == {"model", "jitter", "fast"}
    assert len({case.name for case in cases}) == len(cases)
    assert {(case.config.touch, case.config.pad) for case in cases} == {
        (touch, pad) for touch in ("one", "both") for pad in ("skip", "always")
    }
    assert {case.config.value_bytes for case in cases} == {8, 64, 384, 512}
    for case in {case.config: case for case in cases}.values():
        statuses = ADAPTER.golden(ADAPTER.job(case.tensors, case.config), case.config)["statuses"]
        assert set(statuses) == set(Status)


def test_a_map_that_stopped_says_why():
    counters = {"status": Fault.LATE_TOUCH | Fault.PAGE, "answered_count": 1860}
    assert ADAPTER.faults(OramConfig(touch_cycles=77), counters) == (
        "The map stopped after 1,860 answers, LATE_TOUCH: a record was not read within touch_cycles, 77",
        "The map stopped after 1,860 answers, PAGE: a page is not the one that was written",
    )
    assert ADAPTER.faults(OramConfig(), counters | {"status": 0}) == ()
