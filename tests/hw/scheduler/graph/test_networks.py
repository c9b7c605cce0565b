"""The shipped networks: complete, valid, as large as published, and reproduced by their commands."""

import math
from functools import cache

import pytest

from hw.errors import InputError
from hw.scheduler.graph.bands import Cutter
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.networks import network_names, network_path
from hw.scheduler.plan.problem import Problem
from tests.hw.scheduler.graph.test_fuse import check_fused
from tests.support.networks.zoo import make_network

#: Made from timm, which the tests do not install.
TIMM = ("nasnet_a", "nasnet_a_cell", "pnasnet5", "pnasnet5_cell")
#: Known by the sizes of their tensors only.
SIZES = ("gpt2kv", "inception", "rw40", "rw80", "rw120")
#: Most one operator needs once elementwise operators are merged, KiB, as the small graphs state it.
REQUIRED_KIB = {
    "gpt2kv": 4096, "inception": 691, "mobilenet_v2": 1470, "resnet18": 980, "rw120": 1403, "rw40": 540,
    "rw80": 639, "unet": 2048,
}  # fmt: skip

load = cache(load_model)


@pytest.mark.parametrize("name", network_names())
def test_every_network_is_whole(name):
    graph = load(name)
    assert graph.name == name
    assert graph.made_by == f"python -m tests.support.networks.zoo {name}"
    made: set[str] = set()
    for operator in graph.operators:
        for read in operator.inputs:
            assert graph.tensor[read].off_chip_first or read in made, "producers stand before consumers"
        made.update(operator.outputs)
    kinds = {tensor.kind for tensor in graph.tensors}
    assert {TensorKind.INPUT, TensorKind.OUTPUT} <= kinds
    for tensor in graph.tensors:
        read = bool(graph.consumers[tensor.name])
        assert tensor.off_chip_first == (tensor.name not in made)
        assert read or tensor.kind is TensorKind.OUTPUT
    assert (TensorKind.CACHE in kinds) == (name in ("gpt2_medium_decode", "gpt2kv"))
    assert graph_to_json(graph) == network_path(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in network_names() if name not in SIZES])
def test_shapes_and_accesses_fit(name):
    graph = load(name)
    for operator in graph.operators:
        for read, access in operator.accesses.items():
            shape, made = graph.tensor[read].shape, graph.tensor[operator.outputs[0]].shape
            extent, rows = shape[access.axis], made[access.output_axis]
            first, last = access.rows(rows - 1, rows, extent)
            assert 0 <= first < last <= extent
    assert all(tensor.shape and tensor.element_bits == 8 for tensor in graph.tensors)
    by_rows = sum(bool(operator.accesses) for operator in graph.operators)
    assert by_rows > 0.5 * len(graph.operators)


@pytest.mark.parametrize("name", network_names())
def test_merging_changes_nothing_else(name):
    check_fused(load(name))


#: Multiply-accumulates in millions, and their tolerance.
MACS = {
    "codenet_a": (279.844352, 0),  # Dong et al., arXiv 2006.08357, summed over its layers
    "codenet_c": (1119.377408, 0),
    "codenet_d": (3507.274240, 0),
    "densenet121": (2834, 1),  # fvcore's count of torchvision's network: 2.834 G
    "inception_v1": (1500, 75),  # Szegedy et al., arXiv 1409.4842, section 1: 1.5 billion
    "inception_v2": (2000, 50),  # Ioffe and Szegedy, arXiv 1502.03167: 2.0 billion
    "mobilenet_v2": (300, 1),  # Sandler et al., arXiv 1801.04381, table 4: 300 M
    "nasnet_a": (23_800, 50),  # Zoph et al., arXiv 1707.07012, table 2: 23.8 B
    "pnasnet5": (25_000, 100),  # Liu et al., arXiv 1712.00559, table 5: 25.0 B
    "resnet18": (1814, 1),  # fvcore: 1.814 G
    "resnet50": (4089, 1),  # fvcore: 4.089 G
    "vgg19": (19_632, 10),  # Simonyan and Zisserman, arXiv 1409.1556: 19.6 G
    # Projections, scores and weighted sum, and the two products of the feed-forward part of each layer.
    "minilm_layer": ((4 * 128 * 384**2 + 2 * 128**2 * 384 + 2 * 128 * 384 * 1536) / 1e6, 0),
    "minilm": (6 * (4 * 128 * 384**2 + 2 * 128**2 * 384 + 2 * 128 * 384 * 1536) / 1e6, 0),
    "gpt2_medium_prefill": (24 * (12 * 512 * 1024**2 + 2 * 512**2 * 1024) / 1e6, 0),
    "gpt2_medium_decode": (24 * (12 * 1024**2 + 2 * 1024 * 1024) / 1e6, 0),
}


@pytest.mark.parametrize("name", sorted(MACS))
def test_multiply_accumulates_are_the_published_ones(name):
    expected, tolerance = MACS[name]
    found = sum(operator.macs for operator in load(name).operators) / 1e6
    assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=tolerance)


#: Parameters in thousands, and how far from them is still the same figure: normalizations have two statistics
#: more than are usually counted, and networks written down here have biases in their place.
PARAMETERS = {
    "alexnet": (60_965, 0.5),
    "densenet121": (7_979 + 2 * 83.648, 1),
    "gpt2_medium_prefill": (24 * (12 * 1024**2 + 13 * 1024) / 1e3 + 2.048, 0.5),
    "inception_v1": (6_999, 0.5),
    "mobilenet_v2": (3_505 - 17, 1),
    "nasnet_a": (88_900, 400),
    "pnasnet5": (86_100, 250),
    "resnet18": (11_690 - 4.8, 1),
    "resnet50": (25_557 + 2 * 26.56, 1),
    "squeezenet": (1_235.496, 0.001),
    "vgg19": (143_667.240, 0.001),
}


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_parameters_are_the_published_ones(name):
    expected, tolerance = PARAMETERS[name]
    found = sum(operator.weight_bytes for operator in load(name).operators) / 1e3
    assert math.isclose(found, expected, abs_tol=tolerance)


@pytest.mark.parametrize("name", sorted(REQUIRED_KIB))
def test_the_largest_working_set_is_the_stated_one(name):
    problem = Problem(graph=fuse_elementwise(load(name)))
    assert max(problem.working_set) * problem.word_bytes == REQUIRED_KIB[name] * 1024


@pytest.mark.parametrize("name", [name for name in network_names() if name not in TIMM])
def test_its_command_makes_it_again(name):
    assert graph_to_json(make_network(name)) == network_path(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in network_names() if name not in SIZES])
def test_every_network_can_be_cut_into_bands(name):
    graph = fuse_elementwise(load(name))
    cutter = Cutter(graph)
    bands = {tensor: min(3, rows) for tensor, rows in cutter.rows.items()}
    assert len(bands) > 0.4 * len(graph.tensors)
    cut = cutter.split(bands)
    assert len(cut.operators) > 1.3 * len(graph.operators)
    assert sum(operator.macs for operator in cut.operators) == sum(
        operator.macs for operator in graph.operators
    )
    assert sum(tensor.size_bytes for tensor in cut.tensors) == sum(
        tensor.size_bytes for tensor in graph.tensors
    )


def test_networks_that_are_not_there():
    for find in (network_path, make_network):
        with pytest.raises(InputError, match=r"network must be one of .*, not 'resnet19'"):
            find("resnet19")
