"""Programs of torch.export: real ones where PyTorch is installed, and the error where it is not."""

import importlib.util
import sys

import pytest

from hw.errors import InputError, ToolError
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.importers.torch_export import import_program
from tests.support.networks.zoo import make_network


@pytest.fixture(params=["torch", "onnxscript"])
def missing(request, monkeypatch):
    """One of the two libraries cannot be imported, wherever this runs."""
    monkeypatch.setitem(sys.modules, request.param, None)
    if request.param == "torch" and importlib.util.find_spec("onnxscript") is None:
        monkeypatch.setitem(sys.modules, "onnxscript", type(sys)("onnxscript"))
    return request.param


def test_a_library_is_missing(tmp_path, missing):
    path = tmp_path / "net.pt2"
    path.write_bytes(b"")
    with pytest.raises(ToolError, match=rf"\({missing} is missing\): pip install 'loomwork\[torch\]'"):
        load_model(str(path))
    with pytest.raises(ToolError, match=missing):
        import_program(None, name="net")


def test_networks_of_timm_need_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ToolError, match=r"pnasnet5 is made from timm \(timm is missing\)"):
        make_network("pnasnet5")


def exported():
    """A convolution with normalization and rectifier, and a product; the program and an example."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 8 * 8, 10),
    ).eval()
    return torch, torch.export.export(network, (torch.zeros(1, 3, 8, 8),))


# PyTorch 2.13 uses a part of its own that it calls deprecated, while it translates.
@pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")
def test_a_program_becomes_a_graph(tmp_path):
    torch, program = exported()
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    graph = load_model(str(path))
    assert graph == import_program(program, name="net")
    kinds = [operator.kind for operator in graph.operators]
    assert (kinds[0], kinds[-1]) == ("conv", "matmul")
    assert sum(operator.macs for operator in graph.operators) == 8 * 64 * 27 + 512 * 10
    sizes = [tensor.size_bytes for tensor in graph.tensors]
    assert (sizes[0], sizes[-1]) == (192, 10)


def test_files_that_are_no_programs(tmp_path):
    exported()
    path = tmp_path / "net.pt2"
    for content in (b"", b"no program", b"PK\x03\x04" + b"\x00" * 60):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a program saved by torch\.export\.save"):
            load_model(str(path))
