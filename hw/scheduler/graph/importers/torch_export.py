"""Graphs from programs of `torch.export`, by way of PyTorch's own translation to ONNX."""

from importlib import import_module
from pathlib import Path
from typing import Any

from hw.errors import InputError, ToolError
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers.onnx_model import import_onnx


def load_program(path: Path) -> Graph:
    """Load a program written by `torch.export.save`; InputError for any other file, else as
    `import_program`.
    """
    torch = _torch()
    try:
        program = torch.export.load(path)
    # torch.load raises any exception of the archive's reader, the unpickler or the schema check.
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError("model", str(path), f"a program saved by torch.export.save ({reason})") from error
    return import_program(program, name=path.stem)


def import_program(program: Any, *, name: str, **options: Any) -> Graph:
    """Convert a `torch.export.ExportedProgram` of static shapes into a graph; options as of `import_onnx`.

    InputError as `import_onnx`, and when PyTorch cannot translate an operator; ToolError when PyTorch or
    onnxscript is missing.
    """
    torch = _torch()
    try:
        exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=True)
    except torch.onnx.OnnxExporterError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError("program", name, f"one that PyTorch can translate ({reason})") from error
    model = exported.model_proto
    # Only shapes count: parameters would make a message larger than protobuf's limit.
    for parameter in model.graph.initializer:
        if len(parameter.raw_data) > 1 << 16:
            parameter.ClearField("raw_data")
            parameter.data_location = 1
    return import_onnx(model.SerializeToString(), name=name, **options)


def _torch() -> Any:
    try:
        # torch.onnx imports it when it exports; PyTorch's package does not depend on it.
        import_module("onnxscript")
        import torch
    except ImportError as error:
        need = f"programs of torch.export need PyTorch and onnxscript ({error.name} is missing)"
        raise ToolError(f"{need}: pip install 'loomwork[torch]'") from error
    return torch
