"""Loading a model of any supported format: a file, or the name of a shipped network."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hw.edge import read_json
from hw.errors import InputError
from hw.scheduler.graph.documents import read_graph
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers.kib import import_kib
from hw.scheduler.graph.networks import network_names, network_path


def load_model(
    model: str,
    *,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    say: Callable[[str], None] | None = None,
) -> Graph:
    """Load a graph: a file of ONNX (``.onnx``), a saved `torch.export` program (``.pt2``), a graph in either
    JSON form (``.json``), or a shipped network by its name.

    ``dimensions``: values of an ONNX model's open dimensions, by name. ``shapes``: whole shapes of its
    inputs. ``say``: called with a line for each wrong statement of such a model.  InputError for a missing
    file or network, or another format; ToolError when a library for the format is missing.
    """
    path = Path(model)
    for option, values in (("--dim", dimensions), ("--shape", shapes)):
        if values and path.suffix != ".onnx":
            raise InputError(option, ", ".join(values), "left out: only ONNX models leave dimensions open")
    if model in network_names():
        return read_graph(network_path(model))
    if path.suffix not in (".onnx", ".pt2", ".json"):
        known = ", ".join(network_names())
        raise InputError("model", model, f"an .onnx, .pt2 or .json file, or one of {known}")
    if not path.is_file():
        raise InputError("model", model, "a file that exists")
    # Each library is loaded only when needed.
    if path.suffix == ".onnx":
        from hw.scheduler.graph.importers.onnx_model import import_onnx

        return import_onnx(path, dimensions=dimensions, shapes=shapes, say=say)
    if path.suffix == ".pt2":
        from hw.scheduler.graph.importers.torch_export import load_program

        return load_program(path)
    document = read_json(path)
    if isinstance(document.data, dict) and "format" not in document.data and "operators" in document.data:
        return import_kib(document)
    return read_graph(path)
