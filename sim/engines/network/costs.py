"""Cost and bound of each operator of a compiled network, as a table and as a report."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hw.config import config_dict
from hw.network.compile.operands import Operands
from hw.network.model.layers import Layer, layers_of, play
from hw.network.model.overlap import Overlap
from hw.network.model.timeline import Timeline
from hw.network.predict import predict
from hw.prediction import Prediction
from sim.engines.network.build_folder import Build
from sim.host.console import print_table
from sim.host.files import write_text

_COLUMNS = ("operator", "kind", "commands", "cycles", "array used", "weights, bytes", "bound by")


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Predicted cycles of a build's operators, by the board's calibrated memory."""

    build: Build

    @cached_property
    def timeline(self) -> Timeline | Overlap:
        """The cycles of a launch."""
        return play(self.build.program, self.build.config, self.build.board)

    @cached_property
    def layers(self) -> list[Layer]:
        """Its operators, in order of execution."""
        return layers_of(self.build.program, self.timeline)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """Kinds of the network's operators, and of products that the compiler joined, by name."""
        works = [work for step in self.build.compiled.steps.steps for work in step.works]
        joined = {
            work.operator.name: work.operator.kind for work in works if isinstance(work.operator, Operands)
        }
        return joined | {operator.name: operator.kind for operator in self.build.network.operators}

    def kind(self, layer: Layer) -> str:
        """Return the kind of an operator; ``copy`` for one that the network does not have."""
        return self._kinds.get(layer.name, "copy")

    @property
    def figures(self) -> dict[str, int]:
        """Figures of the whole network, each name with its unit."""
        build, plan = self.build, self.build.compiled.plan
        names = (
            "peak_bytes", "avoidable_bytes", "offchip_read_bytes", "offchip_write_bytes",
            "transfers_total",
        )  # fmt: skip
        return {
            "predicted_cycles": self.timeline.cycles,
            "load_cycles": self.timeline.load_cycles,
            "drain_cycles": self.timeline.drain_cycles,
            "macs_total": build.network.macs,
            "model_weight_bytes": build.network.weight_bytes,
            "packet_bytes": sum(beats.nbytes for beats in build.program.passes),
            "weight_read_bytes": sum(layer.weight_bytes for layer in self.layers),
            "image_bytes": len(build.image),
            "commands_total": len(build.program.steps),
            "scratchpad_bytes": plan.scratchpad_bytes,
            **{name: getattr(plan.totals, name) for name in names},
            "plan_tensor_bytes": plan.totals.compulsory_bytes,
            "moved_bytes": self.prediction.moved_bytes,
            "compulsory_bytes": self.prediction.compulsory_bytes,
        }

    @cached_property
    def prediction(self) -> Prediction:
        """The prediction of a launch."""
        return predict(self.build.program, self.build.config, self.build.board)

    @property
    def moved_of_compulsory(self) -> float:
        """Bytes of a launch, of those that any kernel moves."""
        return self.prediction.moved_bytes / self.prediction.compulsory_bytes

    def print(self, seconds: float) -> None:
        """Print a line for each operator, their total, and the figures of the whole network."""
        build, figures = self.build, self.figures
        rows = [self._row(layer) for layer in self.layers]
        used = self._used(figures["macs_total"], figures["predicted_cycles"])
        whole = (f"{figures[name]:,}" for name in ("commands_total", "predicted_cycles"))
        rows.append(("whole launch", "", *whole, used, f"{figures['weight_read_bytes']:,}", ""))
        shape = f"{build.config.columns} columns, {build.config.lanes} lanes"
        print_table(f"{build.name} on {build.board.title}, {shape}: in {seconds:.1f} s", _COLUMNS, rows)
        whole_rows = [(name, f"{value:,}") for name, value in figures.items()]
        whole_rows.append(("moved_of_compulsory", f"{self.moved_of_compulsory:.3f}"))
        print_table("Figures", ("figure", "value"), whole_rows)
        for name, pairs in build.compiled.unequal_pairs.items():
            what = f"{pairs:,} of 65,536 pairs of operands are rounded otherwise than by onnxruntime"
            print(f"loomwork: warning: operator {name!r}: {what}", file=sys.stderr)

    def write(self, path: Path) -> None:
        """Write the same as JSON."""
        build = self.build
        document: dict[str, Any] = {
            "format": "loomwork-costs-2",
            "name": build.name,
            "board": build.board.name,
            "configuration": config_dict(build.config),
            **self.figures,
            "moved_of_compulsory": round(self.moved_of_compulsory, 4),
            "claim": build.compiled.plan.certificate.claim,
            "unequal_pairs": build.compiled.unequal_pairs,
            "operators": [
                {
                    "name": layer.name,
                    "kind": self.kind(layer),
                    "commands_total": layer.steps,
                    "macs_total": layer.macs,
                    "begin_cycle": layer.begin,
                    "cycles_total": layer.cycles,
                    **{f"cycles_{cause}": cycles for cause, cycles in layer.spent.items()},
                    "weight_read_bytes": layer.weight_bytes,
                    "transfer_bytes": layer.transfer_bytes,
                    "bound_by": str(layer.bound),
                }
                for layer in self.layers
            ],
        }
        write_text(path, json.dumps(document, indent=2) + "\n")

    def _row(self, layer: Layer) -> tuple[str, ...]:
        used = self._used(layer.macs, layer.cycles) if layer.macs else ""
        weights = f"{layer.weight_bytes:,}" if layer.weight_bytes else ""
        counts = f"{layer.steps:,}", f"{layer.cycles:,}"
        return (layer.name, self.kind(layer), *counts, used, weights, str(layer.bound))

    def _used(self, macs: int, cycles: int) -> str:
        """Return the share of the array's multiplications that a network needs."""
        matrix = self.build.config.matrix
        return f"{macs / (cycles * matrix.columns * matrix.inputs):.0%}"
