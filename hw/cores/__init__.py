"""One core in somebody's own design: the names that stay (``docs/use-a-core.md``).

A core is a component of Amaranth, or, by `generate_core`, a module of Verilog with flat ports.  Names of
this module are public: they change only with a line in the changelog.  Others may change at any time.
"""

from hw.attention.config import AttentionConfig
from hw.attention.core.core import AttentionCore
from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.attention.driver.streams import attention_streams
from hw.conv.config import ConvConfig
from hw.conv.core.core import ConvCore
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.layout import map_words
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors
from hw.conv.driver.streams import conv_shapes, conv_streams
from hw.conv.driver.weight_streams import ChannelParameters
from hw.conv.driver.workload import MapName
from hw.cores.generate import CoreDesign, core_name, generate_core, write_core
from hw.cores.items import item_bits
from hw.cores.kinds import CORES, CoreKind, find_core
from hw.lib import axi
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.place import CellPlacer, InlinePlacer

__all__ = [
    "CORES",
    "AttentionConfig",
    "AttentionCore",
    "CellPlacer",
    "ChannelParameters",
    "ConvConfig",
    "ConvCore",
    "ConvLayer",
    "ConvProgram",
    "ConvStep",
    "CoreDesign",
    "CoreKind",
    "InlinePlacer",
    "IntegerJob",
    "LayerTensors",
    "MapName",
    "Mask",
    "Output",
    "ReadDMA",
    "Scaling",
    "WriteDMA",
    "attention_streams",
    "axi",
    "conv_shapes",
    "conv_streams",
    "core_name",
    "find_core",
    "generate_core",
    "item_bits",
    "map_words",
    "write_core",
]
