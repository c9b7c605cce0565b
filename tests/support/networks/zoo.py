"""``python -m tests.support.networks.zoo NAME ...`` makes the shipped networks again.

Without a name it makes all it can: those of timm need ``loomwork[torch]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from hw.edge import read_json
from hw.errors import InputError, ToolError
from hw.scheduler.graph import networks
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers.kib import import_kib
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.support.networks import convolutional, transformers
from tests.support.networks.convolutional import SPREAD

_SHIPPED = Path(networks.__file__).parent
_SOURCES = Path(__file__).parent / "sources"
_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

#: Networks in the onnx package without their parameters, and their names there.
_CARRIED = {"alexnet": "bvlc_alexnet"} | {
    name: name
    for name in (
        "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
        "zfnet512",
    )
}  # fmt: skip
#: Networks that are known by their sizes in KiB.
_SIZES = ("rw40", "rw80", "rw120", "inception", "gpt2kv")
#: Networks that are written down here.
_WRITTEN: dict[str, Callable[[], bytes]] = {
    "resnet18": convolutional.resnet18,
    "mobilenet_v2": convolutional.mobilenet_v2,
    "unet": convolutional.unet,
    "gpt2_medium_prefill": partial(transformers.gpt2_medium, tokens=512),
    "gpt2_medium_decode": partial(transformers.gpt2_medium, tokens=1, past=1023),
    "minilm": transformers.minilm,
    "minilm_layer": partial(transformers.minilm, layers=1),
    **{f"codenet_{variant}": partial(convolutional.codenet, variant) for variant in "acd"},
}
#: Networks of timm, and the module of them that is meant where that is not all.
_TIMM = {
    "pnasnet5": ("pnasnet5large", ""),
    "nasnet_a": ("nasnetalarge", ""),
    "pnasnet5_cell": ("pnasnet5large", "cell_3"),
    "nasnet_a_cell": ("nasnetalarge", "cell_3"),
}
_NAMES = sorted([*_CARRIED, *_SIZES, *_WRITTEN, *_TIMM])


def make_network(name: str) -> Graph:
    """Make a shipped network from its source.

    InputError when none is called so, ToolError when a library is missing that it needs.
    """
    made_by = f"python -m tests.support.networks.zoo {name}"
    if name in _CARRIED:
        return import_onnx(_LIGHT / f"light_{_CARRIED[name]}.onnx", name=name, made_by=made_by)
    if name in _SIZES:
        return import_kib(read_json(_SOURCES / f"{name}.json"), made_by=made_by)
    if name in _WRITTEN:
        return _without_spreading(import_onnx(_WRITTEN[name](), name=name, made_by=made_by))
    if name in _TIMM:
        return _from_timm(*_TIMM[name], name, made_by)
    raise InputError("network", name, "one of " + ", ".join(_NAMES))


def _without_spreading(graph: Graph) -> Graph:
    """Leave out the operators that only repeat a tensor that the engine spreads itself."""
    spread = {each.outputs[0]: each.inputs[0] for each in graph.operators if each.name.endswith(SPREAD)}
    operators = []
    for operator in graph.operators:
        if operator.outputs[0] not in spread:
            _, _, name = operator.name.partition(":")
            operators.append(
                replace(
                    operator,
                    name=f"{len(operators)}:{name}",
                    inputs=tuple(spread.get(each, each) for each in operator.inputs),
                    accesses={spread.get(each, each): access for each, access in operator.accesses.items()},
                )
            )
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name not in spread)
    return replace(graph, tensors=tensors, operators=tuple(operators))


def _from_timm(model: str, part: str, name: str, made_by: str) -> Graph:
    """Return a network of timm, or one of its modules with the inputs it gets there; values do not matter."""
    try:
        import timm
        import torch
    except ImportError as error:
        need = f"{name} is made from timm ({error.name} is missing): pip install 'loomwork[torch]'"
        raise ToolError(need) from error
    from hw.scheduler.graph.importers.torch_export import import_program

    network = timm.create_model(model, pretrained=False).eval()
    image: tuple[Any, ...] = (torch.zeros(1, *network.default_cfg["input_size"]),)
    with torch.no_grad():
        if part:
            inputs: list[tuple[Any, ...]] = []
            module = network.get_submodule(part)
            module.register_forward_pre_hook(lambda _, given: inputs.append(given))
            network(*image)
            network, image = module, inputs[0]
        program = torch.export.export(network, image)
    return import_program(program, name=name, made_by=made_by)


def main(names: list[str]) -> None:
    """Write networks over the shipped files."""
    for name in names or _NAMES:
        graph = make_network(name)
        (_SHIPPED / f"{name}.json").write_text(graph_to_json(graph), encoding="utf-8")
        print(f"{name}.json: {len(graph.operators)} operators, {len(graph.tensors)} tensors")


if __name__ == "__main__":
    main(sys.argv[1:])
