"""Reading a workload: the form of the file is seen from its ending and its first lines."""

import re
from collections.abc import Mapping
from pathlib import Path

from hw.errors import InputError
from sim.host.paths import check_readable
from sim.workloads.accelforge import read_accelforge
from sim.workloads.layers import Workload
from sim.workloads.scale_sim import read_topology
from sim.workloads.zigzag import read_zigzag

#: A workload's key at the beginning of a line: of AccelForge's files, with or without a template around.
_ACCELFORGE = re.compile(r"^(workload|renames|arch)\s*:", re.MULTILINE)


def read_workload(path: Path, variables: Mapping[str, int]) -> Workload:
    """Read a topology of SCALE-Sim (.csv), a workload of ZigZag or AccelForge (.yaml), or a model (.onnx).

    ``variables``: values of a template's variables, or of a model's open dimensions, by name.

    Raises `InputError` for the first thing that is wrong; the message names the file and, where there is one,
    the line.
    """
    check_readable("--workload", path)
    if path.suffix == ".onnx":
        # Without the planner's packages the other forms are read.
        from sim.workloads.onnx_layers import read_onnx

        return read_onnx(path, variables)
    if path.suffix not in (".csv", ".yaml", ".yml"):
        legal = "a .csv file of SCALE-Sim, a .yaml file of ZigZag or AccelForge, or an .onnx model"
        raise InputError("--workload", str(path), legal)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("--workload", str(path), "text in UTF-8") from error
    accelforge = path.suffix != ".csv" and _ACCELFORGE.search(text)
    if variables and not accelforge:
        name = next(iter(variables))
        raise InputError(
            "--dim", name, "left out: only templates of AccelForge and ONNX models have variables"
        )
    if path.suffix == ".csv":
        return read_topology(path, text)
    return read_accelforge(path, text, variables) if accelforge else read_zigzag(path, text)
