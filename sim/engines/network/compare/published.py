"""Published figures of others: AMD's DPU on networks of images, and accelerators of GPT-2 medium.

The DPU's: Vitis AI 2.5 model zoo, ZCU104, two B4096 at 300 MHz.  Source: ``model_zoo/README.md`` of
``github.com/Xilinx/Vitis-AI``, release 2.5, "Performance on ZCU104", and UG1354 2.5, "ZCU104 Evaluation
Board".  A B4096 has 2,048 multipliers of int8; two have those of an array of 64 x 64.  The figures are end to
end, with several threads on the processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLOCK_MHZ = 300.0
MULTIPLIERS = 4096


@dataclass(frozen=True, kw_only=True)
class PublishedDpu:
    """One network of the model zoo."""

    name: str  #: There.
    giga_operations: float  #: A multiplication and an addition are two, as published.
    images_a_second: float

    @property
    def cycles(self) -> float:
        """Cycles of an image, both processors together."""
        return CLOCK_MHZ * 1e6 / self.images_a_second


#: By the name of the network's file.
DPU: Mapping[str, PublishedDpu] = {
    "resnet18": PublishedDpu(name="chen_color_resnet18_pt", giga_operations=3.63, images_a_second=437.02),
    "resnet50": PublishedDpu(name="resnet_v1_50_tf", giga_operations=6.97, images_a_second=175.0),
    "squeezenet": PublishedDpu(name="SqueezeNet_pt", giga_operations=0.3517, images_a_second=1315.93),
    "mobilenet_v2": PublishedDpu(
        name="mobilenet_v2_1_0_224_tf", giga_operations=0.602, images_a_second=609.18
    ),
    "vgg16": PublishedDpu(name="vgg_16_tf", giga_operations=30.96, images_a_second=37.1),
}


#: Decoder layers of GPT-2 medium.
GPT2_MEDIUM_LAYERS = 24


@dataclass(frozen=True, kw_only=True)
class PublishedTransformer:
    """An accelerator's time for all layers of GPT-2 medium, for a prompt."""

    name: str
    device: str
    clock_mhz: float
    form: str  #: Of weights and activations.
    milliseconds: Mapping[int, float]  #: By tokens of the prompt.
    source: str = "published"

    @property
    def method(self) -> str:
        """Its name with device, clock and precision."""
        return f"{self.name}, {self.device}, {self.clock_mhz:g} MHz, {self.form}"


#: Times to the first token: table 4 of StreamTensor (MICRO 2025, arXiv 2509.13694), which has the first two
#: from their papers (arXiv 2209.10797; 2404.04815).  The embedding and the product behind the last layer are
#: in them.
DFX = PublishedTransformer(
    name="DFX",
    device="U280",
    clock_mhz=200.0,
    form="FP16",
    milliseconds={32: 177.2, 64: 349.1, 128: 692.8, 256: 1417.6},
)
ALLO = PublishedTransformer(
    name="Allo",
    device="U280",
    clock_mhz=250.0,
    form="W4A8",
    milliseconds={32: 81.5, 64: 163.0, 128: 326.0, 256: 652.0},
)
STREAM_TENSOR = PublishedTransformer(
    name="StreamTensor",
    device="U55C",
    clock_mhz=250.0,
    form="W4A8",
    milliseconds={32: 34.6, 64: 61.3, 128: 125.4, 256: 272.9},
)
#: InTAR (FCCM 2025, arXiv 2502.08807): its abstract has 3.65 to 39.14 times less time than Allo and DFX.  At
#: best it is 39.14 times faster than DFX.  240 MHz is the clock that its build asks for.
INTAR = PublishedTransformer(
    name="InTAR at best",
    device="VPK180",
    clock_mhz=240.0,
    form="W4A8",
    milliseconds={tokens: time / 39.14 for tokens, time in DFX.milliseconds.items()},
    source="derived",
)
#: By the name of a layer's file.
TRANSFORMERS: Mapping[str, tuple[PublishedTransformer, ...]] = {
    "gpt2_medium_layer": (DFX, ALLO, STREAM_TENSOR, INTAR)
}
