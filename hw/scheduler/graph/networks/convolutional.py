"""Convolutional networks, built from the shapes, strides and connections in their papers."""

from __future__ import annotations

from hw.scheduler.graph.networks.builder import Builder


def resnet18() -> bytes:
    """ResNet-18 at 224 x 224 (He et al., arXiv 1512.03385, table 1)."""
    net = Builder("resnet18")
    x = net.relu(net.conv(net.input("image", 1, 3, 224, 224), (3, 64), name="conv1", kernel=7, stride=2))
    x = net.pool(x, name="pool1", kernel=3, stride=2)
    width = 64
    for stage, channels in enumerate((64, 128, 256, 512), 2):
        for block in range(2):
            stride = 2 if block == 0 and stage > 2 else 1
            name = f"conv{stage}_{block + 1}"
            y = net.relu(net.conv(x, (width, channels), name=f"{name}a", kernel=3, stride=stride))
            y = net.conv(y, (channels, channels), name=f"{name}b", kernel=3)
            if stride > 1:
                x = net.conv(x, (width, channels), name=f"{name}s", stride=stride)
            x = net.relu(net.add("Add", x, y, name=f"{name}.sum"))
            width = channels
    return _classifier(net, x, width)


def mobilenet_v2() -> bytes:
    """MobileNetV2 at 224 x 224, width 1 (Sandler et al., arXiv 1801.04381, table 2)."""
    net = Builder("mobilenet_v2")
    x = net.conv(net.input("image", 1, 3, 224, 224), (3, 32), name="stem", kernel=3, stride=2)
    x, width, number = net.relu(x), 32, 0
    rows = "1 16 1 1, 6 24 2 2, 6 32 3 2, 6 64 4 2, 6 96 3 1, 6 160 3 2, 6 320 1 1"
    for row in rows.split(", "):
        expansion, channels, repeats, first = map(int, row.split())
        for repeat in range(repeats):
            number += 1
            inner, stride, y = width * expansion, first if repeat == 0 else 1, x
            if expansion > 1:
                y = net.relu(net.conv(y, (width, inner), name=f"b{number}.expand"))
            y = net.conv(y, (inner, inner), name=f"b{number}.dw", kernel=3, stride=stride, groups=inner)
            y = net.conv(net.relu(y), (inner, channels), name=f"b{number}.project")
            joined = stride == 1 and width == channels
            x = net.add("Add", x, y, name=f"b{number}.sum") if joined else y
            width = channels
    return _classifier(net, net.relu(net.conv(x, (width, 1280), name="last")), 1280)


def _classifier(net: Builder, x: str, width: int) -> bytes:
    x = net.add("GlobalAveragePool", x, name="average")
    net.output(net.dense(net.add("Flatten", x, name="flat"), (width, 1000), name="classes"))
    return net.model()


def unet() -> bytes:
    """U-Net (Ronneberger et al., arXiv 1505.04597, figure 1) with padding, 128 x 128, 32 first channels."""
    net = Builder("unet")
    x, width, skips = net.input("image", 1, 3, 128, 128), 3, []
    for level, channels in enumerate((32, 64, 128, 256)):
        x = _twice(net, x, (width, channels), f"down{level}")
        skips.append((x, channels))
        x, width = net.pool(x, name=f"down{level}.pool", kernel=2, stride=2), channels
    x, width = _twice(net, x, (width, 512), "bottom"), 512
    for level, (skip, channels) in reversed(list(enumerate(skips))):
        weight = net.parameter(width, channels, 2, 2)
        x = net.add("ConvTranspose", x, weight, name=f"up{level}", kernel_shape=[2, 2], strides=[2, 2])
        x = net.add("Concat", skip, x, name=f"up{level}.both", axis=1)
        x, width = _twice(net, x, (2 * channels, channels), f"up{level}"), channels
    net.output(net.conv(x, (width, 2), name="mask"))
    return net.model()


def _twice(net: Builder, x: str, channels: tuple[int, int], name: str) -> str:
    x = net.relu(net.conv(x, channels, name=f"{name}.a", kernel=3))
    return net.relu(net.conv(x, (channels[1], channels[1]), name=f"{name}.b", kernel=3))


def codenet(variant: str) -> bytes:
    """CoDeNet (Dong et al., arXiv 2006.08357), variants a (256, 1x), c (512, 1x) and d (512, 2x).

    ShuffleNetV2 stages, three deformable decoder steps, three heads; each head's results are outputs.
    """
    extent, wide, last = {"a": (256, 116, 1024), "c": (512, 116, 1024), "d": (512, 244, 2153)}[variant]
    net = Builder(f"codenet_{variant}")
    x, width = net.input("image", 1, 3, extent, extent), 24
    x = net.relu(net.conv(x, (3, width), name="stem", kernel=3, stride=4))
    for stage, blocks in enumerate((4, 8, 4), 1):
        channels = wide << (stage - 1)
        for block in range(blocks):
            x = _shuffle_block(net, x, width, channels, f"s{stage}.{block}")
            width = channels
    x, width = net.relu(net.conv(x, (width, last), name="layer4")), last
    for step, channels in enumerate((256, 128, 64)):
        x, width = _deformable_step(net, x, (width, channels), f"dc{step}"), channels
    for head, results in (("hm", 20), ("wh", 2), ("reg", 2)):
        y = net.relu(net.conv(x, (width, width), name=f"{head}.pw1"))
        y = net.relu(net.conv(y, (width, width), name=f"{head}.dw", kernel=3, groups=width))
        net.output(net.conv(y, (width, results), name=f"{head}.pw2"))
    return net.model()


def _shuffle_block(net: Builder, x: str, width: int, channels: int, name: str) -> str:
    """A unit of ShuffleNetV2 (Ma et al., arXiv 1807.11164, figure 3): half the channels pass it by."""
    half = channels // 2
    if width == channels:
        sizes = net.whole(half, half)
        kept, y = net.add("Split", x, sizes, name=f"{name}.split", outputs=2, axis=1)
        stride, width = 1, half
    else:
        kept = net.conv(x, (width, width), name=f"{name}.b1.dw", kernel=3, stride=2, groups=width)
        kept = net.relu(net.conv(kept, (width, half), name=f"{name}.b1.pw"))
        y, stride = x, 2
    y = net.relu(net.conv(y, (width, half), name=f"{name}.pw1"))
    y = net.conv(y, (half, half), name=f"{name}.dw", kernel=3, stride=stride, groups=half)
    y = net.relu(net.conv(y, (half, half), name=f"{name}.pw2"))
    # The shuffle that follows only says where each channel is written.
    return str(net.add("Concat", kept, y, name=f"{name}.both", axis=1))


def _deformable_step(net: Builder, x: str, channels: tuple[int, int], name: str) -> str:
    """Offsets of one number a pixel, a depthwise deformable convolution, a pointwise one, twice the size."""
    width = channels[0]
    offset = net.conv(x, (width, 1), name=f"{name}.off")
    # One number a pixel stands for all 18 coordinates: the engine spreads it.
    weight, square = net.parameter(width, 1, 3, 3), [3, 3]
    y = net.add(
        "DeformConv", x, weight, offset, name=f"{name}.ddw", kernel_shape=square, pads=[1] * 4, group=width
    )
    y = net.relu(net.conv(y, channels, name=f"{name}.pw"))
    scales = net.constant([1.0, 1.0, 2.0, 2.0])
    return str(net.add("Resize", y, "", scales, name=f"{name}.up", mode="nearest"))
