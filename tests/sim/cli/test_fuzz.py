"""Wrong command lines by chance: each ends with status 2 and one line that says what is wrong, or with what
Typer says of an option; none ends in a traceback.

Every command line has one definite error, in a value or in a file; what else it says is right.
"""

import io
import random
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import typer
from typer.testing import CliRunner

from hw.scheduler.graph.networks import network_path
from sim.cli.main import app
from sim.report.report import save
from tests.support.pages.reports import synthetic

WORDS = [
    *("", " ", "nonsense", "-1x", "1e999", "NaN", "🙂", "ééé", "a,b,,", "../..", "%s", "{0}"),
    "x" * 5000,
]
NUMBERS = ["", "x", "1.5.2", "--", "1e", "0x10", "🙂", "1,000", "9" * 5000]
#: Below a file, a link to itself, and below a device.
WRITTEN = ["file/below", "loop.json", "/dev/null/x"]
#: What commands need besides the error; an argument that is to be wrong takes the place of the first.
RIGHT = {
    "sim": ["attention", "--backend", "golden", "--output", "out.npz"],
    "predict": ["attention"],
    "launch": ["attention", "--output", "card"],
    "report": ["right.report"],
    "schema": ["attention"],
    "timing": ["attention"],
    "plan": ["squeezenet", "--scratchpad", "M_R"],
    "check": ["right.graph"],
    "lower": ["right.graph"],
    "graph": ["squeezenet", "--output", "out.json"],
    "compare plan": ["squeezenet"],
    "ablate": ["squeezenet"],
}
#: Wrong values by the name of the option or argument.
WRONG = {
    **dict.fromkeys(["engine", "name", "scratchpad", "objective", "dim", "frozen", "budgets"], WORDS),
    **dict.fromkeys(["board", "without", "within", "older_than", "max_size", "order", "streaming"], WORDS),
    **dict.fromkeys(["tiling", "pipelining", "memory", "backend", "sizes", "log_n", "values"], WORDS),
    **dict.fromkeys(["seed", "worst", "route", "curve_points", "cores", "macs_per_cycle"], NUMBERS),
    **dict.fromkeys(["effort", "heads", "measure_up_to"], NUMBERS),
    **dict.fromkeys(["output", "html", "report", "trace", "labels"], WRITTEN),
    "launch": ["none", "folder", "file", "loop.json", "/dev/zero", "n" * 300],
}
#: Kinds of files that are read, by the same names.
READ = {
    **dict.fromkeys(["input"], (".npz",)),
    **dict.fromkeys(["plan", "reports"], (".json",)),
    **dict.fromkeys(["network", "ops"], (".csv",)),
    **dict.fromkeys(["config", "configs", "board"], (".yaml",)),
    **dict.fromkeys(["model", "models"], (".json", ".onnx", ".pt2")),
}


def right_files():
    """Files that could be used, by suffix."""
    tensors = io.BytesIO()
    np.savez(tensors, **{name: np.zeros((2, 24, 32), np.float32) for name in "qkv"})
    model = onnx.helper.make_model(onnx.helper.make_graph([], "empty", [], []))
    return {
        ".npz": tensors.getvalue(),
        ".json": network_path("squeezenet").read_bytes(),
        ".csv": b"operation,key,value\nput,1,00\n",
        ".yaml": b"rows: 4\nlanes: 32\n",
        ".onnx": model.SerializeToString() + bytes(range(64)),
        ".pt2": tensors.getvalue(),
    }


def spoiled(right, rng):
    """What no command can use, by name: of any kind, and parts of what it can."""
    bomb = io.BytesIO()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s,)}\n" % (b"9" * 40)
    with zipfile.ZipFile(bomb, "w") as archive:
        archive.writestr("q.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    laughs = [b"%c: &%c [%s]\n" % (at, at, b", ".join([b"*%c" % (at - 1)] * 9)) for at in b"bcdefghijklm"]
    flipped = bytearray(right)
    flipped[len(right) // 2] ^= 0xFF
    return {
        "empty": b"",
        "binary": rng.randbytes(4096),
        "text": b"hello\nworld\n",
        "deep": b"[" * 5000,
        "deep_objects": b'{"a":' * 5000,
        "list": b"[1, 2, 3]",
        "object": b'{"format": "loomwork-report-1", "rows": 1e999}',
        "null": b"null",
        "number": b"9" * 10_000,
        "twice": b'{"rows": 4, "rows": 5}',
        "no_utf8": "größer".encode("utf-16"),
        "nuls": bytes(1000),
        "control": b"\x1b[31mrows\x1b[0m: 1\n",
        "laughs": b"a: &a [x]\n" + b"".join(laughs),
        "tag": b"rows: !!python/object/apply:os.system ['true']\n",
        "tabs": b"rows:\t4\n\tlanes: 3\n",
        "bomb": bomb.getvalue(),
        "flipped": bytes(flipped),
        **{f"first_{share}": right[: len(right) * share // 10] for share in (1, 5, 9)},
    }


def write_wrong_files(rng):
    """Write them into this folder, and give the paths by suffix, with those of what is no file at all."""
    Path("file").touch()
    Path("folder").mkdir()
    paths = {}
    for suffix, right in right_files().items():
        Path(f"folder{suffix}").symlink_to("folder")
        Path(f"loop{suffix}").symlink_to(f"loop{suffix}")
        paths[suffix] = [
            "/dev/zero",
            f"none{suffix}",
            f"folder{suffix}",
            f"loop{suffix}",
            f"{'n' * 300}{suffix}",
        ]
        for name, content in spoiled(right, rng).items():
            Path(f"{name}{suffix}").write_bytes(content)
            paths[suffix].append(f"{name}{suffix}")
    return paths


def commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def wrong_lines(paths):
    """All command lines with one error."""
    for path, command in commands(typer.main.get_command(app)):
        right = RIGHT.get(" ".join(path), [])
        yield *path, *right, "--no-such-option"
        for parameter in command.params:
            name = parameter.name
            files = [file for suffix in READ.get(name, ()) for file in paths[suffix]]
            for value in [*WRONG.get(name, ()), *files]:
                if parameter.param_type_name == "option":
                    option = parameter.opts[0]
                    yield *path, *right, f"{option}={value}"
                elif not value.startswith("-"):
                    yield *path, value, *right[1:]


def complaint(words):
    """Say what is wrong with how a command line ends; None where it ends as it should."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return repr(result.exception)[:300]
    if words[0] == "check" and result.exit_code == 1:
        return None  # a plan that is not true, with a line for each reason
    if result.exit_code != 2 or result.stdout:
        return f"status {result.exit_code}: {result.stdout[:300]}"
    if not re.fullmatch(r"loomwork: [^\n]+\n|Usage: .*\n(Try .*\n)?\nError: .*\n", result.stderr):
        return result.stderr[:300]
    return None


@pytest.mark.parametrize("tried", [100, pytest.param(None, marks=pytest.mark.soak)])
def test_wrong_command_lines_end_in_one_line(tmp_path, monkeypatch, tried):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(11)
    paths = write_wrong_files(rng)
    Path("right.graph").write_bytes(right_files()[".json"])
    save(synthetic(), Path("right.report"))
    lines = list(wrong_lines(paths))
    rng.shuffle(lines)
    found = {" ".join(words)[:100]: complaint(words) for words in lines[:tried]}
    assert {words: said for words, said in found.items() if said} == {}
