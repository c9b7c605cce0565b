"""Epochs of a pair of keys: numbers of 64 bits, none of which is taken twice."""

import time
from pathlib import Path

from hw.oram.client.errors import EpochError, JournalError
from hw.oram.client.frames import FrameFile
from hw.oram.client.lock import FileLock

#: Seconds since 1970 at the beginning of 2026. An earlier time is that of a clock which nobody set.
_CLOCK_IS_SET = 1_767_225_600
_BYTES = 8


class EpochFile:
    """The file of all epochs that were taken, by any process. All maps under one pair of keys share it.

    The next epoch is the larger one of two numbers: the last epoch plus 1, and the microseconds since 1970.
    So epochs rise without the file too, as long as the clock is not set back.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, *, above: int = 0) -> int:
        """Return an epoch that was never taken, larger than ``above``. It is on the disk before.

        Raises `EpochError` when the file is damaged, or missing while the clock is not set.
        """
        with FileLock(self._path.with_name(self._path.name + ".lock"), wait=True):
            now, taken = time.time_ns() // 1000, list[int]()
            file = None
            if self._path.exists():
                try:
                    file, bodies = FrameFile.open(self._path)
                except JournalError as error:
                    raise EpochError(f"{error}, after this file is removed and the clock checked") from error
                taken = [int.from_bytes(body, "little") for body in bodies]
            if not taken and now < _CLOCK_IS_SET * 10**6:
                raise EpochError(f"{self._path} has no epoch, and the clock is not set")
            epoch = max(now, above + 1, *(number + 1 for number in taken))
            body = epoch.to_bytes(_BYTES, "little")
            if file is None:
                FrameFile.create(self._path, [body]).close()
                return epoch
            try:
                file.append([body], sync=True)
            finally:
                file.close()
            return epoch
