"""The host's process: it holds the card, so that a map survives the end of its client.

    python3 -m hw.oram.client.carry kernel.xclbin --package kernel --rings FILE

It reads keys and epoch from its input, one JSON object, and begins the map. Then it carries records between
the shared rings and those of the card, without their keys. SIGTERM ends the map, and erases its buffers.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hw.errors import LoomworkError
from hw.oram.client.card import CardRings
from hw.oram.client.sealer import number_of
from hw.oram.client.shared import SharedRings, write_record
from hw.oram.config import OramConfig
from hw.oram.driver.keys import Secrets

_POLL_S = 5e-5


def carry(shared: SharedRings, card: CardRings, ends: Callable[[], bool]) -> None:
    """Carry commands in order, and every response that changed, until the launch or ``ends``."""
    number = 0
    while not ends():
        reason, first = card.ended(), number
        while number_of(record := shared.commands[number % shared.slots].tobytes()) == number:
            card.write(number, record)
            number += 1
        changed = np.flatnonzero((card.responses != shared.responses).any(axis=1))
        for slot in changed.tolist():
            write_record(shared.responses[slot], card.responses[slot].tobytes())
        if reason:
            shared.end(reason)
            return
        if number == first and not changed.size:
            time.sleep(_POLL_S)


class HostProcess:
    """Begins a map for `SharedRings`: runs a command in a session of its own, and hands it keys and epoch.

    ``command``: this module's, or one that leads to it on the machine with the card.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        #: The last process, if this one began it.
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, secrets: Secrets) -> None:
        """Begin a map."""
        given = {name: getattr(secrets, name).hex() for name in ("session_key", "seed")}
        self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(given | {"epoch": secrets.epoch}).encode())
        self.process.stdin.close()


def main() -> None:
    """Parse the command line, begin the map, carry."""
    parser = argparse.ArgumentParser(description="Carry records between shared rings and a card.")
    parser.add_argument("image", type=Path, help="the linked kernel, .xclbin")
    parser.add_argument("--package", type=Path, required=True, help="folder of the kernel's package")
    parser.add_argument("--rings", type=Path, required=True, help="file of the shared rings")
    parser.add_argument("--slots", type=int, default=1024, help="records of either ring, a power of two")
    parser.add_argument("--device", type=int, default=0, help="index of the card")
    options = parser.parse_args()
    meta = json.loads((options.package / "meta.json").read_text())
    config = OramConfig(**meta["config"])
    shared = SharedRings(options.rings, config, slots=options.slots)
    card = CardRings(config, options.image, kernel=meta["kernel"], device=options.device, slots=options.slots)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        given = json.load(sys.stdin)
        keys = {name: bytes.fromhex(given[name]) for name in ("session_key", "seed")}
        card.initialize(Secrets(**keys, epoch=given["epoch"]))
        carry(shared, card, lambda: False)
    except LoomworkError as error:
        shared.end(str(error))
        sys.exit(str(error))
    finally:
        card.stop()
        if not shared.ended():
            shared.end("the host's process ended")


if __name__ == "__main__":
    main()
