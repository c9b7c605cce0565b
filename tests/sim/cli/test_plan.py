"""The planner's commands: files in, files out, one line for what a user can mend."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from hw.board.files import find_board, load_board
from hw.config import load_config
from hw.scheduler.check.check import check
from hw.scheduler.default_plan import default_plan
from hw.scheduler.engine import SchedulerEngine
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.documents import plan_to_json, read_plan
from hw.scheduler.plan_model import plan_model
from hw.scheduler.program.image import encode
from hw.scheduler.program.lower import lower
from sim.plans import suite as plan_suite
from tests.hw.scheduler.graph.onnx_models import model as model_of
from tests.hw.scheduler.graph.onnx_models import node, small
from tests.support.command_line import call, refused


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def diamond():
    """Two ways from one tensor to another: what lies beside the first way costs."""

    def tensor(name, rows, kind=TensorKind.ACTIVATION):
        return Tensor(name=name, size_bytes=rows * 64, shape=(rows, 64), kind=kind)

    def operator(name, inputs, output, kernel=3):
        access = Access(kernel=kernel, pad=kernel // 2)
        return Operator(
            name=name, kind="conv", inputs=tuple(inputs), outputs=(output,), macs=9999,
            accesses=dict.fromkeys(inputs, access),
        )  # fmt: skip

    return Graph(
        name="diamond",
        tensors=(
            tensor("x", 32, TensorKind.INPUT), tensor("a", 32), tensor("b", 64), tensor("c", 64),
            tensor("d", 32), tensor("y", 32, TensorKind.OUTPUT),
        ),
        operators=(
            operator("f", "x", "a"), operator("g", "a", "b"), operator("h", "b", "c"),
            operator("i", "c", "d"), operator("j", ("a", "d"), "y", kernel=1),
        ),
    )  # fmt: skip


@pytest.fixture
def model():
    Path("g.json").write_text(graph_to_json(diamond()))
    return "g.json"


def test_a_plan_is_made_and_checked(model):
    shown = call(
        "plan", model, "--scratchpad", "M_R", "-o", "p.json", "--html", "p.html", "--curve-points", 2
    ).stdout
    plan = read_plan(Path("p.json"))
    assert check(json.loads(Path("p.json").read_text())) == []
    assert plan.scratchpad_bytes == 128 * 64
    assert f"{plan.totals.avoidable_bytes:,}" in shown
    assert plan.certificate.claim in shown
    assert "diamond" in Path("p.html").read_text()
    shown = call("check", "p.json").stdout
    assert "nothing is wrong" in shown
    assert "no model was given" in shown
    assert "compared with the model g.json" in " ".join(
        call("check", "p.json", "--model", model).stdout.split()
    )


def test_equal_requests_give_equal_bytes(model):
    call("plan", model, "--scratchpad", "6KiB", "-o", "p.json")
    call("plan", model, "--scratchpad", "6KiB", "-o", "q.json")
    assert Path("p.json").read_bytes() == Path("q.json").read_bytes()
    assert read_plan(Path("p.json")).totals.avoidable_bytes < 64 * 64 * 4


@pytest.mark.parametrize("order", ["free", "default", "min-peak", "cosma"])
@pytest.mark.parametrize("technique", ["auto", "never"])
def test_every_choice_gives_a_true_plan(model, order, technique):
    choices = [f"--{name}={technique}" for name in ("streaming", "tiling", "pipelining")]
    call("plan", model, "--scratchpad", "M_R", "--order", order, *choices, "-o", "p.json")
    assert check(json.loads(Path("p.json").read_text())) == []


@pytest.mark.parametrize(
    "objective", ["bytes", "bytes,transfers, peak", "latency,bytes", "bytes,latency,peak"]
)
def test_every_objective_gives_a_true_plan(model, objective):
    call("plan", model, "--scratchpad", "M_R", "--objective", objective, "-o", "p.json")
    document = json.loads(Path("p.json").read_text())
    assert check(document) == []
    assert document["options"]["objective"] == objective.replace(" ", "")


def test_a_time_limit_that_was_met_is_told_by_the_plan():
    call("plan", "rw40", "--scratchpad", "540KiB", "--order=default", "--streaming=never", "--tiling=never",
         "--pipelining=never", "--time-limit", "0.01", "-o", "p.json")  # fmt: skip
    document = json.loads(Path("p.json").read_text())
    assert check(document) == []
    certificate = document["certificate"]
    assert any("stopped by the time limit of 0.01 s" in stage["note"] for stage in certificate["stages"])
    assert certificate["order_bound_avoidable_bytes"] <= 2733 * 1024 <= document["totals"]["avoidable_bytes"]


def test_cosmas_program_is_for_small_networks():
    message = "operators of the graph must be at most 12 for COSMA's program, not 41"
    assert message in refused("plan", "rw40", "--scratchpad", "M_H", "--order", "cosma", "-o", "p.json")


def test_a_plan_of_a_shipped_network_is_compared_with_it():
    Path("p.json").write_text(plan_to_json(default_plan(128)))
    shown = " ".join(call("check", "p.json").stdout.split())
    assert "compared with the model minilm_layer" in shown
    document = json.loads(Path("p.json").read_text())
    for name, options, words in (
        ("mine", ("--model", "minilm_layer"), "the model's own name is minilm_layer"),
        ("resnet18", (), "it is not the shipped resnet18"),
    ):
        renamed = document | {"graph": document["graph"] | {"name": name}}
        Path("named.json").write_text(json.dumps(renamed))
        assert words in " ".join(call("check", "named.json", *options).stdout.split())
    for operator in document["graph"]["operators"]:
        for each in (operator, *operator["members"]):
            each["weight_bytes"] = 0
    document["totals"]["parameter_bytes"] = 0
    Path("p.json").write_text(json.dumps(document))
    assert "weight_bytes 0, the model's" in call("check", "p.json", status=1).stderr
    assert "a file that exists" in refused("check", "p.json", "--model", "nothing.onnx")


def test_a_wrong_plan_is_refused_with_the_reason(model):
    call("plan", model, "--scratchpad", "M_R", "-o", "p.json")
    document = json.loads(Path("p.json").read_text())
    document["totals"]["avoidable_bytes"] += 32
    Path("p.json").write_text(json.dumps(document))
    result = call("check", "p.json", status=1)
    assert "avoidable_bytes" in result.stderr


def test_no_plan_is_possible(model):
    line = refused(
        "plan", model, "--scratchpad", "2KiB", "--streaming=never", "--tiling=never", "-o", "p.json"
    )
    assert "scratchpad must be at least 8192 bytes" in line
    assert "operator 'h' needs" in line
    assert not Path("p.json").exists()


def test_the_board_is_not_replaced_by_its_plan(model):
    Path("b.yaml").write_bytes(find_board("u55c").read_bytes())
    line = refused("plan", model, "--scratchpad", "M_R", "--board", "b.yaml", "-o", "b.yaml")
    assert line == "--output must be another file than --board, not 'b.yaml'"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scratchpad", "much"), "scratchpad must be a size such as"),
        (("--scratchpad", "-4KiB"), "scratchpad must be a size such as"),
        (("--scratchpad", "4 apples"), "scratchpad must be a size such as"),
        (("--scratchpad", "1"), "scratchpad must be at least 32 bytes, not '1'"),
        (("--scratchpad", "8GiB"), "scratchpad_bytes must be from 1 to"),
        (("--scratchpad", "M_R", "--objective", "speed"), "objective must be"),
        (("--scratchpad", "M_R", "--objective", "peak,bytes"), "bytes before peak and transfers"),
        (("--scratchpad", "M_R", "--order", "cosma", "--tiling", "always"), "tiling must be auto or never"),
        (("--scratchpad", "M_R", "--time-limit", "0"), "time_limit_s must be above 0, not 0"),
        (("--scratchpad", "M_R", "--effort", "0"), "effort must be at least 1, not 0"),
        (("--scratchpad", "M_R", "--board", "none"), "none"),
        (("--scratchpad", "M_R", "--html", "p.json"), "--html must be another file than --output"),
        (("--scratchpad", "M_R", "--html", "no/p.html"), "--html must be in a directory that exists"),
        (("--scratchpad", "M_R", "--dim", "n=3"), "--dim must be left out"),
    ],
)
def test_wrong_options(model, words, message):
    assert message in refused("plan", model, *words, "-o", "p.json")
    assert not Path("p.json").exists()


@pytest.mark.parametrize("text", ["n", "n=", "=3", "n=-1", "n=1.5"])
def test_wrong_dimensions(text):
    Path("m.onnx").write_bytes(b"")
    message = refused("plan", "m.onnx", "--scratchpad", "M_R", "--dim", text)
    assert "--dim must be NAME=VALUE" in message


def test_of_what_is_no_plan_not_all_is_listed():
    Path("p.json").write_text(json.dumps({f"field{n}": 0 for n in range(20)}))
    lines = call("check", "p.json", status=1).stderr.splitlines()
    assert len(lines) == 11
    assert lines[-1] == f"loomwork: and {len(check({f'field{n}': 0 for n in range(20)})) - 10} more"


def test_a_dimension_has_one_value_and_a_model():
    Path("m.onnx").write_bytes(b"")
    twice = refused("plan", "m.onnx", "--scratchpad", "M_R", "--dim", "n=1", "--dim", "n=2")
    assert "--dim must be given once for n, which is 1 already, not 'n=2'" in twice
    Path("p.json").write_text("{}")
    assert "--dim must be left out without --model, not 'n'" in refused("check", "p.json", "--dim", "n=1")


def onnx_model(op="Relu"):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = helper.make_node(op, ["x"], ["y"], name="f")
    graph = helper.make_graph([made], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def test_a_model_with_an_open_dimension():
    onnx.save(onnx_model(), "m.onnx")
    assert "--dim rows=VALUE" in refused("plan", "m.onnx", "--scratchpad", "M_R")
    call("plan", "m.onnx", "--scratchpad", "M_R", "--dim", "rows=8", "-o", "p.json")
    assert read_plan(Path("p.json")).graph.tensors[0].shape == (8, 64)
    call("graph", "m.onnx", "--dim", "rows=8", "--output", "g.json")
    assert json.loads(Path("g.json").read_text())["operators"][0]["kind"] == "relu"
    call("graph", "m.onnx", "--shape", "x=8,64", "--output", "h.json")
    assert Path("h.json").read_bytes() == Path("g.json").read_bytes()
    call("check", "p.json", "--model", "m.onnx", "--shape", "x=8,64")
    call("check", "p.json", "--model", "m.onnx", "--shape", "x=9,64", status=1)


@pytest.mark.parametrize("text", ["x", "x=", "=3", "x=1,", "x=-1,2", "x=a,2", "x=1.5"])
def test_wrong_shapes(text):
    Path("m.onnx").write_bytes(b"")
    message = refused("graph", "m.onnx", "--shape", text, "-o", "g.json")
    assert "--shape must be INPUT=1,3,48,192 with whole values of at least 0" in message
    twice = refused("graph", "m.onnx", "--shape", "x=1,2", "--shape", "x=1,3", "-o", "g.json")
    assert "--shape must be given once for x, which is 1,2 already, not 'x=1,3'" in twice
    Path("p.json").write_text("{}")
    assert "--shape must be left out without --model" in refused("check", "p.json", "--shape", "x=1")


def test_what_a_model_states_wrongly_is_said():
    made = onnx_model()
    made.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [1, 64]))
    onnx.save(made, "m.onnx")
    said = call("graph", "m.onnx", "--dim", "rows=8", "-o", "g.json").stderr
    line = (
        "loomwork: warning: m.onnx: the model states shape [1, 64] of tensor 'y', which has [8, 64]; shapes"
    )
    assert said.startswith(line)
    assert json.loads(Path("g.json").read_text())["tensors"][1]["shape"] == [8, 64]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.txt", b"", "model must be an .onnx, .pt2 or .json file, or one of"),
        ("g.json", None, "model must be a file that exists"),
        ("g.json", b"{", "JSON"),
        ("m.onnx", b"\xff\xff\xff", "an ONNX model"),
        ("m.onnx", onnx_model("NonZero").SerializeToString(), "NonZero"),
    ],
)
def test_wrong_models(name, content, message):
    if content is not None:
        Path(name).write_bytes(content)
    words = ("--dim", "rows=8") if b"NonZero" in (content or b"") else ()
    assert message in refused("plan", name, "--scratchpad", "M_R", *words)


def test_a_graph_with_a_cycle():
    document = json.loads(graph_to_json(diamond()))
    document["operators"][0]["inputs"] = ["x", "d"]
    document["operators"][0]["accesses"] = {}
    Path("g.json").write_text(json.dumps(document))
    assert "graph must be without a cycle" in refused("plan", "g.json", "--scratchpad", "M_R")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("tensors", 1, "size_bytes"), -5, "size_bytes of tensor 'a' must be from 1 to 4294967295, not -5"),
        (("tensors", 1, "size_bytes"), "2048", "tensors.1.size_bytes must be a whole number, not '2048'"),
        (("tensors", 1, "size_bytes"), 1 << 40, "must be from 1 to 4294967295, not 1099511627776"),
        (("tensors", 1, "shape"), [-32, 64], "shape of tensor 'a' must be positive in every dimension"),
        (("operators", 1, "macs"), -1, "macs of operator 'g' must be at least 0, not -1"),
        (("operators", 1, "inputs"), ["a", "n"], "tensor of operator 'g' must be one the graph declares"),
        (("operators", 1, "colour"), 1, "fifo_bytes, not 'operators.1.colour'"),
        (("operators",), "none", "operators must be a list, not 'none'"),
        (("format",), "loomwork-graph/0", "must be 'loomwork-graph/1', not 'loomwork-graph/0'"),
    ],
)
def test_wrong_graphs(place, value, message):
    document = json.loads(graph_to_json(diamond()))
    inside = document
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    Path("g.json").write_text(json.dumps(document))
    line = refused("plan", "g.json", "--scratchpad", "M_R", "-o", "p.json")
    assert "g.json" in line
    assert message in line
    assert refused("graph", "g.json", "-o", "h.json") == line
    assert not Path("p.json").exists()
    assert not Path("h.json").exists()


def test_wrong_graphs_in_kib():
    operators = [
        {"id": 0, "kib": 4, "op": "in", "source": True, "inputs": []},
        {"id": 1, "kib": -4, "op": "conv", "inputs": [0]},
    ]
    Path("k.json").write_text(json.dumps({"name": "k", "operators": operators}))
    line = refused("plan", "k.json", "--scratchpad", "M_R")
    assert line == "k.json: operators.1.kib must be greater than 0, not -4"


def test_damaged_onnx_models():
    content = small()
    Path("m.onnx").write_bytes(content[: len(content) // 2])
    assert "model must be an ONNX model, and this is none or is damaged" in refused(
        "plan", "m.onnx", "--scratchpad", "M_R"
    )
    made = onnx.load_model_from_string(content)
    made.graph.initializer[2].dims[1] = 1
    onnx.save(made, "m.onnx")
    line = refused("plan", "m.onnx", "--scratchpad", "M_R")
    assert line.startswith("m.onnx: stored values of parameter 'm' must be 64, what shape (64, 1)")
    made = onnx.load_model_from_string(content)
    made.graph.node[0].input[0] = "y"
    onnx.save(made, "m.onnx")
    assert "made by an operator before it: the graph has a cycle" in refused(
        "plan", "m.onnx", "--scratchpad", "M_R"
    )


def test_networks_larger_than_the_memory_of_a_board():
    def huge(count):
        nodes = [node("Relu", f"x{index}", outputs=[f"y{index}"]) for index in range(count)]
        inputs = {f"x{index}": (1 << 16, 1 << 14) for index in range(count)}
        return model_of(nodes, inputs, outputs=[f"y{index}" for index in range(count)])

    Path("m.onnx").write_bytes(huge(2))
    asked = ("plan", "m.onnx", "--scratchpad", "1MiB", "--board")
    line = "bytes of inputs, weights, caches and outputs must be at most 2147483648, the memory of zcu104"
    assert line in refused(*asked, "zcu104")
    Path("m.onnx").write_bytes(huge(9))
    assert "must be at most 17179869184, the memory of u55c, not 19327352832" in refused(*asked, "u55c")


def test_a_model_is_planned_as_its_graph_is():
    Path("m.onnx").write_bytes(small())
    call("graph", "m.onnx", "-o", "m.json")
    call("plan", "m.onnx", "--scratchpad", "M_R", "-o", "p.json")
    call("plan", "m.json", "--scratchpad", "M_R", "-o", "q.json")
    assert Path("p.json").read_bytes() == Path("q.json").read_bytes()
    assert check(json.loads(Path("p.json").read_text())) == []


def test_networks_are_listed():
    shown = call("networks").stdout
    assert "resnet50" in shown
    assert "4,089" in shown


def test_networks_are_compared(model):
    call("compare", "plan", model, "--budgets", "M_R,0.5M_R", "--output", "out")
    rows = json.loads(Path("out/compare.json").read_text())["rows"]
    assert [row["budget"] for row in rows] == ["M_R", "0.5M_R"]
    assert [row["whole"] is None for row in rows] == [False, True]
    assert Path("out/compare.html").stat().st_size > 100_000


def test_a_comparison_goes_on_where_it_was_interrupted(model, monkeypatch):
    planned = []

    def plan(graph, scratchpad, **more):
        planned.append(scratchpad)
        if len(planned) == 4:
            raise KeyboardInterrupt
        return plan_model(graph, scratchpad, **more)

    monkeypatch.setattr("sim.plans.suite.plan_model", plan)
    asked = ("compare", "plan", model, "--output", "out", "--budgets")
    with pytest.raises(KeyboardInterrupt):
        plan_suite.run_compare([model], "M_P,M_R,0.5M_R", Path("out"), 0, 1)
    assert len(json.loads(Path("out/compare.json").read_text())["rows"]) == 1
    call(*asked, "M_P,M_R,0.5M_R")
    rows = json.loads(Path("out/compare.json").read_text())["rows"]
    assert [row["budget"] for row in rows] == ["M_P", "M_R", "0.5M_R"]
    assert len(planned) == 4 + 3, "the two plans of the first row are not made again"
    call(*asked, "M_R")
    assert len(planned) == 7
    call(*asked, "M_R", "--seed", "1")
    assert len(planned) == 9


def test_a_damaged_comparison_is_made_anew(model):
    Path("out").mkdir()
    Path("out/compare.json").write_text('{"format": "loomwork-compare-plan/2", "rows": [{"full": 3}]}')
    call("compare", "plan", model, "--budgets", "M_R", "--output", "out")
    assert len(json.loads(Path("out/compare.json").read_text())["rows"]) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--budgets", "M_X"), "scratchpad must be a size"),
        (("--budgets", "M_R,M_R"), "--budgets must be given once, not 'M_R'"),
        (("resnet18", "resnet18"), "models must be given once, not 'resnet18'"),
    ],
)
def test_comparisons_that_are_refused(model, given, message):
    assert message in refused("compare", "plan", model, *given, "--output", "out")
    assert not Path("out").exists()


def test_a_plan_is_lowered_to_an_image_or_frozen_into_a_kernel(model):
    call("plan", model, "--scratchpad", "M_R", "--board", "u55c", "-o", "p.json")
    program = lower(read_plan(Path("p.json")))
    call("lower", "p.json", "-o", "p.bin")
    assert Path("p.bin").read_bytes() == encode(program)
    call("lower", "p.json", "--frozen", "u55c", "-o", "p.yaml")
    board = load_board("u55c")
    config = load_config(SchedulerEngine(), Path("p.yaml"), board)
    assert config.program == program
    assert config.max_steps == len(program.steps)
    line = refused("lower", "p.json", "--frozen", "zcu104", "-o", "q.yaml")
    assert line == "word_bytes of the plan must be 16, the port of zcu104's memory, not 32"
    assert not Path("q.yaml").exists()


def test_what_is_no_plan_is_neither_lowered_nor_executed(model):
    call("plan", model, "--scratchpad", "M_R", "-o", "p.json")
    document = json.loads(Path("p.json").read_text())
    document["totals"]["peak_bytes"] += 32
    Path("p.json").write_text(json.dumps(document))
    assert "plan must be true: " in refused("lower", "p.json", "-o", "p.bin")
    assert "plan must be true: " in refused("sim", "scheduler", "--plan", "p.json")
    line = refused("sim", "attention", "--plan", "p.json")
    assert line == "--plan must be left out: the engine attention has no such option, not 'p.json'"
    assert not Path("p.bin").exists()
