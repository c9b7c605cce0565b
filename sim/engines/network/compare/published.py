"""Published throughput of AMD's DPU: Vitis AI 2.5 model zoo, ZCU104, two B4096 at 300 MHz.

Source: ``model_zoo/README.md`` of ``github.com/Xilinx/Vitis-AI``, release 2.5, "Performance on ZCU104", and
UG1354 2.5, "ZCU104 Evaluation Board".  A B4096 has 2,048 multipliers of int8; two have those of an array of
64 x 64.  The figures are end to end, with several threads on the processor.
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
