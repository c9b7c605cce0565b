"""``host.py`` of a package: a launch folder carried out, its results left in the folder."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from .card import Launch, open
from .errors import HostError
from .folder import check_image, check_package, discard_results, read_folder, read_package, save_results


def main(package: str, image: str, backend: str) -> None:
    """Carry out the launch folder that the command line names.

    ``package``: folder of the package. ``image``: path of the image in it, where the build leaves it.
    ``backend``: see `loomwork_host.open`.

    Ends with one line and status 1 for an error.
    """
    options = _options(os.path.join(package, image), backend)
    try:
        _carry_out(options, package, backend)
    except HostError as error:
        sys.exit(str(error))


def _options(image: str, backend: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Carry out a folder of `loomwork launch` on the card.")
    parser.add_argument("launch", help="launch folder")
    if backend == "xrt":
        parser.add_argument("--xclbin", dest="image", default=image, help="the linked kernel; that of build")
        parser.add_argument("--device", type=int, default=0, help="index of the card")
    else:
        parser.add_argument("--bitstream", dest="image", default=image, help="the bitstream; that of build")
        parser.set_defaults(device=0)
    parser.add_argument("--instance", help="name of the kernel's instance, when there are several")
    parser.add_argument("--timeout-ms", type=int, default=60_000, help="give up after this long")
    return parser.parse_args()


def _carry_out(options: argparse.Namespace, package: str, backend: str) -> None:
    folder, meta = read_folder(options.launch), read_package(package)
    check_package(folder, meta)
    check_image(options.image, meta)
    discard_results(folder.path)
    with open(options.image, backend, options.device) as card:
        launch = card.load(folder.path, options.instance).submit()
        results = launch.finish(options.timeout_ms / 1000, whole=True)
        device = card.device.name if backend == "xrt" else meta["board"]
        hardware = {"device": device, "driver": backend, "host_wall_seconds": launch.seconds}
        # The results first: they are not lost when the counters cannot be read.
        save_results(folder, results, None, hardware)
        save_results(folder, results, launch.counters, hardware)
        launch.check()
        _report(launch)
    print(f"next: loomwork verify {shlex.quote(options.launch)}")


def _report(launch: Launch) -> None:
    print(f"{'wall clock from call to end, us':40} {1e6 * launch.seconds:>20,.2f}")
    for name, count in launch.counters.items():
        print(f"{name:40} {count:>20,}")
