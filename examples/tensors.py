"""The tensors beside this file: two causal heads of attention, and a deformable layer; run from anywhere."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def main() -> None:
    """Write ``in.npz`` and ``layer.npz``."""
    rng = np.random.default_rng(0)
    heads = {name: rng.normal(size=(2, 40, 32)).astype(np.float16) for name in "qkv"}
    np.savez_compressed(HERE / "in.npz", allow_pickle=False, **heads, causal=np.array(True))
    taps = (3, 3)
    np.savez_compressed(
        HERE / "layer.npz",
        allow_pickle=False,
        x=rng.normal(size=(16, 8, 8)).astype(np.float16),
        w=rng.normal(size=(8, 16, *taps)).astype(np.float16),
        offset=rng.uniform(-2, 2, size=(18, 8, 8)).astype(np.float16),
        pads=np.array([1, 1, 1, 1]),
    )


if __name__ == "__main__":
    main()
