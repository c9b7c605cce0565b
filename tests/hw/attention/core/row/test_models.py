"""Models of multipliers against the multipliers they stand for, as cells of the device, on any inputs."""

import re

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.score import ScoreUnit
from hw.attention.core.row.value import ValueUnit
from hw.lib.arithmetic.models import models_of
from hw.lib.convert import Models, to_verilog
from tests.support.gateware.bench import assert_equal

_PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+) ?;$", re.MULTILINE)
#: Bits that a call of the bench's source of random bits has.
_RANDOM = 32
#: Where the ports of a unit have numbers of parts.
_PARTS = {"place": (1,), "pick": (2,), "step": (0, 2)}

#: Every number of folds, one and two rows, sums that take turns and sums of packed products.
CONFIGS = [
    {"lanes": 16, "folds": 2, "merge_lanes": 1},
]
IN_SOAK = [
    {"lanes": 16, "folds": 4, "merge_lanes": 2, "probability_bits": 8},
    {"lanes": 16, "folds": 1, "merge_lanes": 1},
    {"lanes": 16, "folds": 3, "merge_lanes": 2},
    {"lanes": 16, "folds": 4, "merge_lanes": 1, "probability_bits": 12},
    {"lanes": 64, "folds": 2, "merge_lanes": 4, "tile_keys": 32},
    {"lanes": 64, "folds": 2, "merge_lanes": 4, "probability_bits": 8},
    {"lanes": 128, "folds": 1, "merge_lanes": 16, "tile_keys": 128, "probability_bits": 8},
]


def ports(text, module):
    """Return the widths of a module's inputs, but for its clock and its reset, and of its outputs."""
    body = re.search(rf"^module {module}\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)[0]
    found = [(way, name, int(high or 0) + 1) for way, high, name in _PORT.findall(body)]
    inputs = {name: width for way, name, width in found if way == "input" and name not in ("clk", "rst")}
    return inputs, {name: width for way, name, width in found if way == "output"}


@pytest.mark.parametrize(
    "config",
    [*CONFIGS, *(pytest.param(config, marks=pytest.mark.soak) for config in IN_SOAK)],
    ids=lambda config: "-".join(map(str, config.values())),
)
def test_a_model_computes_what_its_multipliers_do(config, tmp_path):
    """Scores of two rows and of one, and a row's values, in one bench."""
    config = AttentionConfig(rows=2, **config)
    units = {
        "Pair": lambda: ScoreUnit(config, rows=2),
        "Single": lambda: ScoreUnit(config, rows=1),
        "Values": lambda: ValueUnit(config),
    }
    texts, widths, placed, bits = {}, {}, {"gold": "", "gate": ""}, 0
    for name, unit in units.items():
        texts |= {
            f"gold_{name}.v": (gold := to_verilog(unit(), name=f"Gold{name}")),
            f"gate_{name}.v": (gate := to_verilog(unit(), name=f"Gate{name}", platform=Models())),
        }
        assert ("DSP48E2" in gold, "DSP48E2" in gate) == (True, False)
        inputs, outputs = ports(gold, f"Gold{name}")
        assert ports(gate, f"Gate{name}") == (inputs, outputs)
        pins = []
        for pin, width in inputs.items():
            words = {f"{name}_{pin}_{n}": min(_RANDOM, width - n) for n in range(0, width, _RANDOM)}
            widths |= words
            joined = "{" + ", ".join(reversed(words)) + "}"
            for low in _PARTS.get(pin, ()) if config.folds == 3 else ():  # no value has a fourth
                joined = f"({joined} ^ (({joined} >> {low} & {joined} >> {low + 1} & 1) << {low + 1}))"
            pins.append(f".{pin}({joined})")
        # Reset ends what is on its way through the chains in some lanes and not in others.
        reset = "reset" if name == "Values" else "1'b0"
        for kind in placed:
            outs, low = [], bits
            for pin, width in outputs.items():
                outs.append(f".{pin}({kind}[{low + width - 1}:{low}])")
                low += width
            connected = ", ".join([".clk(clk)", f".rst({reset})", *pins, *outs])
            placed[kind] += f"{kind.title()}{name} {kind}_{name} ({connected});\n"
        bits = low
    texts |= {path.name: path.read_text() for path in models_of("".join(texts.values()))}
    assert_equal(tmp_path, texts, widths, bits=bits, **placed)
