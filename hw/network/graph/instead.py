"""What would replace ONNX's operators that have no counterpart on integers."""

_FOLDED = "fold it into the convolution before it, as `loomwork quantize` does"
_NORMALIZED = "train with BatchNormalization, which folds into the convolution before it"
_STRIDED = "convolutions that keep the size, with dilation where they must see far"
_PARTS = "a convolution for each part"

#: By the operator's name.
INSTEAD = {
    "BatchNormalization": _FOLDED,
    "InstanceNormalization": _NORMALIZED,
    "GroupNormalization": _NORMALIZED,
    "LayerNormalization": _NORMALIZED,
    "LRN": _NORMALIZED,
    "ConvTranspose": _STRIDED,
    "Resize": _STRIDED,
    "Upsample": _STRIDED,
    "DepthToSpace": _STRIDED,
    "GlobalMaxPool": "MaxPool with a kernel of the whole image",
    "ReduceMax": "MaxPool with a kernel of the whole image",
    "ReduceSum": "GlobalAveragePool and Mul by the number of pixels",
    "LpPool": "AveragePool",
    "Pad": "pads of the convolution or pool that reads it",
    "Split": _PARTS,
    "Slice": _PARTS,
    "Gather": _PARTS,
    "Sub": "Mul of the second operand by -1, and Add",
    "Div": "Mul by the reciprocal of a constant",
    "Pow": "Mul of the operand by itself",
    "Sqrt": "a supported function of one element, such as Tanh",
    "PRelu": "LeakyRelu, with one slope for all channels",
    "Selu": "Elu",
    "Celu": "Elu",
    "Mish": "HardSwish",
    "Softsign": "Tanh",
    "ThresholdedRelu": "Relu",
    "LogSoftmax": "Softmax",
    "ArgMax": "the values themselves: the host takes the greatest",
    "TopK": "the values themselves: the host takes the greatest",
    "Sum": "Add of two operands, several times",
    "Mean": "Add of two operands, several times, and Mul by a constant",
}


def advice(kind: str) -> str:
    """Return a replacement of an operator, as the end of a sentence; empty where none is known.

    >>> advice("Selu"), advice("LSTM")
    ('; instead: Elu', '')
    """
    return f"; instead: {INSTEAD[kind]}" if kind in INSTEAD else ""
