"""README's commands, one after the other as a reader copies them: what each names is there, and they run."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import typer

from hw.board.files import board_names
from hw.registry import ENGINES
from sim.cli.main import app

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Options whose file a command makes; what any other names must be there before.
MAKES = {"output", "report", "html", "trace", "labels"}
#: What a command makes without being asked to.
UNASKED = {"plan": "plan.json"}
#: Commands of up to hours, of which the test above checks the words; and `make test`, which may run this one.
LONG = ("make test", "loomwork compare", "loomwork sweep", "loomwork report attention.db")
FILE = re.compile(r"[\w./-]+\.(?:npz|csv|yaml|json|html|db|onnx|bin)|card")


def commands():
    """Return every command of README's blocks, with the lines it goes on for."""
    found = []
    for block in BLOCK.findall((ROOT / "README.md").read_text()):
        command = ""
        for line in block.splitlines():
            command += ("\n" if command else "") + line
            try:
                words = shlex.split(command, comments=True)
            except ValueError:  # a quote is open
                continue
            if words:
                found.append(command)
            command = ""
        assert not command, command
    return found


def words_of(command):
    return shlex.split(command, comments=True)


def parsed(words):
    """Return the name of a call of `loomwork`, and its values by parameter."""
    command = typer.main.get_command(app)
    name = []
    while hasattr(command, "commands"):
        assert words[0] in command.commands, words
        name.append(words[0])
        command = command.commands[words.pop(0)]
    values, rest, _ = command.make_parser(typer.Context(command)).parse_args(args=words)
    assert rest == [], rest
    for parameter in command.params:
        assert not parameter.required or values.get(parameter.name) is not None, parameter.name
    return name, values


def named_files(value):
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in values if isinstance(each, str) and FILE.fullmatch(each)]


def test_what_the_commands_name_is_there():
    """Commands, options, targets, boards and engines; and files, in the tree or made by a command before."""
    made, calls = set(), 0
    targets = set(re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)) | {
        ".venv/ready"
    }
    for command in commands():
        first, *words = words_of(command)
        if first == "make":
            assert words[0] in targets, command
            given = dict(word.split("=") for word in words[1:])
            assert given.get("BOARD", "u55c") in board_names()
            assert given.get("ENGINE", "attention") in ENGINES
            assert (ROOT / given.get("CONFIG", "README.md")).is_file(), command
        elif first == "export":
            assert words == [f"PATH={os.path.join('$PWD', '.venv/bin')}:$PATH"]
        elif first == "python":
            if words[0] == "-m":
                assert importlib.util.find_spec(words[1]), command
                if words[1] == "sim.engines.network.nsfw":
                    made |= {f"build/{name}" for name in ("open_nsfw.onnx", "samples.npz", "photograph.npz")}
            else:
                compile(words[1], "README.md", "exec")
                made |= {f"heads{heads}.npz" for heads in (1, 12)}
        else:
            assert first == "loomwork", command
            calls += 1
            name, values = parsed(words)
            for option, value in values.items():
                for file in named_files(value):
                    if option in MAKES:
                        made.add(file)
                    else:
                        assert file in made or (ROOT / file).is_file(), (command, file)
            if name[0] == "sweep":
                made.add(Path(values["spec"]).with_suffix(".db").name)
            elif name[0] in UNASKED:
                made.add(UNASKED[name[0]])
    assert calls > 15


def test_examples_are_what_makes_them(tmp_path):
    """The tensors in the tree, to the last number."""
    shutil.copy(ROOT / "examples" / "tensors.py", tmp_path)
    spec = importlib.util.spec_from_file_location("tensors", tmp_path / "tensors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    for name in ("in.npz", "layer.npz"):
        with np.load(ROOT / "examples" / name) as kept, np.load(tmp_path / name) as fresh:
            assert {*kept} == {*fresh}
            for tensor in kept:
                np.testing.assert_array_equal(kept[tensor], fresh[tensor])


@pytest.mark.soak
def test_the_commands_run_in_a_fresh_clone(tmp_path, subtests):
    """All but `LONG`. Builds are those of other tests; a clean clone, before a release, makes its own."""
    clone = tmp_path / "clone"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    paths = [path for path in os.environ["PATH"].split(os.pathsep) if not path.startswith(str(ROOT))]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LOOMWORK_")}
    environ |= {"PATH": os.pathsep.join(paths)}
    exported = []
    for command in commands():
        if command.startswith("export "):
            exported.append(command)
        elif command.startswith("make tb") and not shutil.which("iverilog"):
            continue
        elif not command.startswith(LONG):
            with subtests.test(command):
                script = "\n".join([*exported, command])
                run = subprocess.run(
                    ["bash", "-c", script],
                    cwd=clone,
                    env=environ,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, run.stderr[-2000:]
