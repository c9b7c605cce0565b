"""Convolutional networks, built from the shapes, strides and connections in their papers."""

from __future__ import annotations

from onnx import TensorProto

from tests.support.networks.builder import Builder

#: End of the names of operators that only repeat a tensor, as an engine does by itself.
SPREAD = "spread"


def resnet18(side: int = 224) -> bytes:
    """ResNet-18, of ``side`` rows and columns (He et al., arXiv 1512.03385, table 1)."""
    net = Builder("resnet18")
    x = net.relu(net.conv(net.input("image", 1, 3, side, side), 64, name="conv1", kernel=7, stride=2))
    x = net.pool(x, name="pool1", kernel=3, stride=2)
    for stage, channels in enumerate((64, 128, 256, 512), 2):
        for block in range(2):
            stride = 2 if block == 0 and stage > 2 else 1
            name = f"conv{stage}_{block + 1}"
            y = net.relu(net.conv(x, channels, name=f"{name}a", kernel=3, stride=stride))
            y = net.conv(y, channels, name=f"{name}b", kernel=3)
            if stride > 1:
                x = net.conv(x, channels, name=f"{name}s", stride=stride)
            x = net.relu(net.add("Add", x, y, name=f"{name}.sum"))
    return _classifier(net, x)


def resnet50(side: int = 224) -> bytes:
    """ResNet-50, of ``side`` rows and columns (He et al., arXiv 1512.03385, table 1).

    The first 1 x 1 convolution of a block has its stride.
    """
    net = Builder("resnet50")
    x = net.relu(net.conv(net.input("image", 1, 3, side, side), 64, name="conv1", kernel=7, stride=2))
    x = net.pool(x, name="pool1", kernel=3, stride=2)
    for stage, blocks in enumerate((3, 4, 6, 3), 2):
        channels = 16 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 2 else 1
            name = f"conv{stage}_{block + 1}"
            y = net.relu(net.conv(x, channels, name=f"{name}a", stride=stride))
            y = net.relu(net.conv(y, channels, name=f"{name}b", kernel=3))
            y = net.conv(y, 4 * channels, name=f"{name}c")
            if block == 0:
                x = net.conv(x, 4 * channels, name=f"{name}s", stride=stride)
            x = net.relu(net.add("Add", x, y, name=f"{name}.sum"))
    return _classifier(net, x)


def squeezenet(side: int = 224) -> bytes:
    """SqueezeNet 1.1, of ``side`` rows and columns (Iandola et al., arXiv 1602.07360; later release)."""
    net = Builder("squeezenet")
    image = net.input("image", 1, 3, side, side)
    x = net.relu(net.conv(image, 64, name="conv1", kernel=3, stride=2, padded=False))
    for number, squeezed in enumerate((16, 16, 32, 32, 48, 48, 64, 64), 2):
        if number in (2, 4, 6):
            x = net.pool(x, name=f"pool{number - 1}", kernel=3, stride=2, padded=False)
        name = f"fire{number}"
        x = net.relu(net.conv(x, squeezed, name=f"{name}.squeeze"))
        narrow = net.relu(net.conv(x, 4 * squeezed, name=f"{name}.expand1"))
        wide = net.relu(net.conv(x, 4 * squeezed, name=f"{name}.expand3", kernel=3))
        x = net.concat(narrow, wide, name=name)
    x = net.add("GlobalAveragePool", net.relu(net.conv(x, 1000, name="conv10")), name="average")
    net.output(net.add("Flatten", x, name="classes"))
    return net.model()


def vgg16(side: int = 224) -> bytes:
    """VGG-16, of ``side`` rows and columns (Simonyan and Zisserman, arXiv 1409.1556, table 1, column D)."""
    net = Builder("vgg16")
    x = net.input("image", 1, 3, side, side)
    for stage, (channels, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for layer in range(layers):
            x = net.relu(net.conv(x, channels, name=f"conv{stage}_{layer + 1}", kernel=3))
        x = net.pool(x, name=f"pool{stage}", kernel=2, stride=2)
    x = net.add("Flatten", x, name="flat", width=512 * (side // 32) ** 2)
    for number in (6, 7):
        x = net.relu(net.dense(x, 4096, name=f"fc{number}"))
    net.output(net.dense(x, 1000, name="classes"))
    return net.model()


def mobilenet_v2(side: int = 224) -> bytes:
    """MobileNetV2, of ``side`` rows and columns, width 1 (Sandler et al., arXiv 1801.04381, table 2)."""
    net = Builder("mobilenet_v2")
    x = net.relu(net.conv(net.input("image", 1, 3, side, side), 32, name="stem", kernel=3, stride=2))
    number = 0
    rows = "1 16 1 1, 6 24 2 2, 6 32 3 2, 6 64 4 2, 6 96 3 1, 6 160 3 2, 6 320 1 1"
    for row in rows.split(", "):
        expansion, channels, repeats, first = map(int, row.split())
        for repeat in range(repeats):
            number += 1
            stride, y = first if repeat == 0 else 1, x
            if expansion > 1:
                y = net.relu(net.conv(y, net.width[x] * expansion, name=f"b{number}.expand"))
            y = net.relu(net.depthwise(y, name=f"b{number}.dw", stride=stride))
            y = net.conv(y, channels, name=f"b{number}.project")
            joined = stride == 1 and net.width[x] == channels
            x = net.add("Add", x, y, name=f"b{number}.sum") if joined else y
    return _classifier(net, net.relu(net.conv(x, 1280, name="last")))


def _classifier(net: Builder, x: str) -> bytes:
    x = net.add("GlobalAveragePool", x, name="average")
    net.output(net.dense(net.add("Flatten", x, name="flat"), 1000, name="classes"))
    return net.model()


def unet() -> bytes:
    """U-Net (Ronneberger et al., arXiv 1505.04597, figure 1) with padding, 128 x 128, 32 first channels."""
    net = Builder("unet")
    x, skips = net.input("image", 1, 3, 128, 128), []
    for level, channels in enumerate((32, 64, 128, 256)):
        skips.append(_twice(net, x, channels, f"down{level}"))
        x = net.pool(skips[-1], name=f"down{level}.pool", kernel=2, stride=2)
    x = _twice(net, x, 512, "bottom")
    for level, skip in reversed(list(enumerate(skips))):
        channels, square = net.width[skip], [2, 2]
        weight = net.parameter(net.width[x], channels, *square)
        x = net.add(
            "ConvTranspose", x, weight, name=f"up{level}", width=channels, kernel_shape=square, strides=square
        )
        x = _twice(net, net.concat(skip, x, name=f"up{level}.both"), channels, f"up{level}")
    net.output(net.conv(x, 2, name="mask"))
    return net.model()


def _twice(net: Builder, x: str, channels: int, name: str) -> str:
    x = net.relu(net.conv(x, channels, name=f"{name}.a", kernel=3))
    return net.relu(net.conv(x, channels, name=f"{name}.b", kernel=3))


def codenet(variant: str) -> bytes:
    """CoDeNet (Dong et al., arXiv 2006.08357), variants a (256, 1x), c (512, 1x) and d (512, 2x).

    ShuffleNetV2 stages, three deformable decoder steps, three heads; each head's results are outputs.
    """
    extent, wide, last = {"a": (256, 116, 1024), "c": (512, 116, 1024), "d": (512, 244, 2153)}[variant]
    net = Builder(f"codenet_{variant}")
    x = net.relu(net.conv(net.input("image", 1, 3, extent, extent), 24, name="stem", kernel=3, stride=4))
    for stage, blocks in enumerate((4, 8, 4), 1):
        for block in range(blocks):
            x = _shuffle_block(net, x, wide << (stage - 1), f"s{stage}.{block}")
    x = net.relu(net.conv(x, last, name="layer4"))
    for step, channels in enumerate((256, 128, 64)):
        x = _deformable_step(net, x, channels, f"dc{step}")
    for head, results in (("hm", 20), ("wh", 2), ("reg", 2)):
        y = net.relu(net.conv(x, net.width[x], name=f"{head}.pw1"))
        y = net.relu(net.depthwise(y, name=f"{head}.dw"))
        net.output(net.conv(y, results, name=f"{head}.pw2"))
    return net.model()


def _shuffle_block(net: Builder, x: str, channels: int, name: str) -> str:
    """A unit of ShuffleNetV2 (Ma et al., arXiv 1807.11164, figure 3): half the channels pass it by."""
    half = channels // 2
    if net.width[x] == channels:
        kept, y = net.halves(x, name=f"{name}.split")
        stride = 1
    else:
        kept = net.depthwise(x, name=f"{name}.b1.dw", stride=2)
        kept = net.relu(net.conv(kept, half, name=f"{name}.b1.pw"))
        y, stride = x, 2
    y = net.relu(net.conv(y, half, name=f"{name}.pw1"))
    y = net.relu(net.conv(net.depthwise(y, name=f"{name}.dw", stride=stride), half, name=f"{name}.pw2"))
    # The shuffle that follows only says where each channel is written.
    return net.concat(kept, y, name=f"{name}.both")


def _deformable_step(net: Builder, x: str, channels: int, name: str) -> str:
    """Offsets of one number a pixel, a depthwise deformable convolution, a pointwise one, twice the size."""
    # One number a pixel stands for all 18 coordinates: `zoo` takes this out, as the engine spreads it.
    offset, width = net.conv(x, 1, name=f"{name}.off"), net.width[x]
    times = net.constant([1, 18, 1, 1], TensorProto.INT64)
    offset = net.add("Expand", offset, times, name=f"{name}.{SPREAD}")
    weight, square = net.parameter(width, 1, 3, 3), [3, 3]
    y = net.add(
        "DeformConv", x, weight, offset, name=f"{name}.ddw", kernel_shape=square, pads=[1] * 4, group=width
    )
    y = net.relu(net.conv(y, channels, name=f"{name}.pw"))
    return net.add("Resize", y, "", net.constant([1, 1, 2, 2]), name=f"{name}.up", mode="nearest")
