"""Networks with shapes for tests: a U-Net and chains of convolutions."""

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind

KERNEL = Access(axis=1, output_axis=1, kernel=3, pad=1)
POOL = Access(axis=1, output_axis=1, kernel=2, stride=2)
DOUBLE = Access(axis=1, output_axis=1, up=2)
POINT = Access(axis=1, output_axis=1)


class Network:
    """Collects operators over square images, channels first."""

    def __init__(self, name, channels, side):
        self.name, self.operators = name, []
        self.tensors = [self._tensor("in", channels, side, TensorKind.INPUT)]

    @staticmethod
    def _tensor(name, channels, side, kind):
        shape = (channels, side, side)
        return Tensor(name=name, size_bytes=channels * side * side, shape=shape, kind=kind)

    def add(self, kind, inputs, channels, side, access, macs=0, weight_bytes=0, output=False):
        """Append an operator; return the name of its tensor."""
        name = f"{kind}{len(self.operators)}"
        role = TensorKind.OUTPUT if output else TensorKind.ACTIVATION
        self.tensors.append(self._tensor(f"{name}_out", channels, side, role))
        self.operators.append(
            Operator(
                name=name, kind=kind, inputs=tuple(inputs), outputs=(f"{name}_out",), macs=macs,
                weight_bytes=weight_bytes, accesses=dict.fromkeys(inputs, access),
            )
        )  # fmt: skip
        return f"{name}_out"

    def conv(self, source, channels, side, output=False):
        """Append a convolution with a kernel of 3x3."""
        read = next(tensor for tensor in self.tensors if tensor.name == source)
        weights = 9 * read.shape[0] * channels
        return self.add("conv", [source], channels, side, KERNEL, weights * side * side, weights, output)

    def graph(self):
        """The network so far."""
        return Graph(name=self.name, tensors=tuple(self.tensors), operators=tuple(self.operators))


def unet(side=128, base=32, levels=4):
    """The U-Net of the tests: by default with tensors of 512 KiB at the top and 32 at the bottom."""
    network = Network("unet", 3, side)
    at, channels, skips = "in", base, []
    for _ in range(levels):
        at = network.conv(network.conv(at, channels, side), channels, side)
        skips.append(at)
        side //= 2
        at = network.add("pool", [at], channels, side, POOL)
        channels *= 2
    at = network.conv(network.conv(at, channels, side), channels, side)
    for skip in reversed(skips):
        channels //= 2
        side *= 2
        at = network.add("up", [at], channels, side, DOUBLE, macs=2 * channels * channels * side * side)
        at = network.add("cat", [skip, at], 2 * channels, side, POINT)
        at = network.conv(network.conv(at, channels, side), channels, side)
    network.add("conv", [at], 1, side, POINT, macs=channels * side * side, output=True)
    return network.graph()


def chain(depth, side=32, channels=4):
    """Convolutions of one size, one after the other."""
    network = Network("chain", channels, side)
    at = "in"
    for number in range(depth):
        at = network.conv(at, channels, side, output=number == depth - 1)
    return network.graph()
