"""``python -m hw.scheduler.graph.networks.zoo NAME ...`` makes the shipped networks again.

Without a name it makes all it can: those of timm need ``loomwork[torch]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from hw.edge import read_json
from hw.errors import InputError, ToolError
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers.kib import import_kib
from hw.scheduler.graph.importers.onnx_model import import_onnx
from hw.scheduler.graph.networks import convolutional, transformers

_LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
_SOURCES = Path(__file__).parent / "sources"


def _made_by(name: str) -> str:
    return f"python -m hw.scheduler.graph.networks.zoo {name}"


def _from_wheel(file: str, name: str) -> Graph:
    """Give a network that the onnx package carries, without its parameters."""
    return import_onnx(_LIGHT / f"light_{file}.onnx", name=name, made_by=_made_by(name))


def _from_sizes(name: str) -> Graph:
    """Give a graph that is known by its sizes in KiB."""
    return import_kib(read_json(_SOURCES / f"{name}.json"), made_by=_made_by(name))


def _written(write: Callable[[], bytes], name: str) -> Graph:
    """Give a network written down here."""
    return import_onnx(write(), name=name, made_by=_made_by(name))


def _from_timm(model: str, name: str, part: str = "") -> Graph:
    """Give a network of timm, or one of its modules with the inputs it gets there; values do not matter."""
    try:
        import timm
        import torch
    except ImportError as error:
        need = f"{name} is made from timm ({error.name} is missing): pip install 'loomwork[torch]'"
        raise ToolError(need) from error
    from hw.scheduler.graph.importers.torch_export import import_program

    network = timm.create_model(model, pretrained=False).eval()
    image: tuple[Any, ...] = (torch.zeros(1, *network.default_cfg["input_size"]),)
    if part:
        inputs: list[tuple[Any, ...]] = []
        module = network.get_submodule(part)
        module.register_forward_pre_hook(lambda _, given: inputs.append(given))
        with torch.no_grad():
            network(*image)
        network, image = module, inputs[0]
    with torch.no_grad():
        program = torch.export.export(network, image)
    return import_program(program, name=name, made_by=_made_by(name))


def _all() -> Mapping[str, Callable[[str], Graph]]:
    """How each network is made, by name."""
    wheel = {
        "alexnet": "bvlc_alexnet",
        "densenet121": "densenet121",
        "inception_v1": "inception_v1",
        "inception_v2": "inception_v2",
        "resnet50": "resnet50",
        "shufflenet": "shufflenet",
        "squeezenet": "squeezenet",
        "vgg19": "vgg19",
        "zfnet512": "zfnet512",
    }
    written: dict[str, Callable[[], bytes]] = {
        "resnet18": convolutional.resnet18,
        "mobilenet_v2": convolutional.mobilenet_v2,
        "unet": convolutional.unet,
        "gpt2_medium_prefill": partial(transformers.gpt2_medium, tokens=512),
        "gpt2_medium_decode": partial(transformers.gpt2_medium, tokens=1, past=1023),
        "minilm": transformers.minilm,
        "minilm_layer": partial(transformers.minilm, layers=1),
        **{f"codenet_{variant}": partial(convolutional.codenet, variant) for variant in "acd"},
    }
    timm = {
        "pnasnet5": ("pnasnet5large", ""),
        "nasnet_a": ("nasnetalarge", ""),
        "pnasnet5_cell": ("pnasnet5large", "cell_3"),
        "nasnet_a_cell": ("nasnetalarge", "cell_3"),
    }
    made: dict[str, Callable[[str], Graph]] = {}
    made |= {name: partial(_from_wheel, file) for name, file in wheel.items()}
    made |= dict.fromkeys(("rw40", "rw80", "rw120", "inception", "gpt2kv"), _from_sizes)
    made |= {name: partial(_written, write) for name, write in written.items()}
    made |= {name: partial(_timm_of, model, part) for name, (model, part) in timm.items()}
    return made


def _timm_of(model: str, part: str, name: str) -> Graph:
    return _from_timm(model, name, part)


def make_network(name: str) -> Graph:
    """Make a shipped network from its source.

    Raises
    ------
    InputError
        When none is called so.
    ToolError
        When a library is missing that it needs.
    """
    known = _all()
    if name not in known:
        raise InputError("network", name, "one of " + ", ".join(sorted(known)))
    return known[name](name)


def main(names: list[str]) -> None:
    """Write networks beside this file."""
    for name in names or sorted(_all()):
        graph = make_network(name)
        path = Path(__file__).parent / f"{name}.json"
        path.write_text(graph_to_json(graph), encoding="utf-8")
        print(f"{path.name}: {len(graph.operators)} operators, {len(graph.tensors)} tensors")


if __name__ == "__main__":
    main(sys.argv[1:])
