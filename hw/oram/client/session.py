"""A session with a map: sequence numbers, records, responses, epochs."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from hw.errors import InputError
from hw.oram.client import events
from hw.oram.client.epochs import EpochFile
from hw.oram.client.errors import JournalError, LostMapError, SessionError
from hw.oram.client.journal import Journal
from hw.oram.client.lock import FileLock
from hw.oram.client.operation import LOADING, Call, Finished, Operation
from hw.oram.client.sealer import Sealer, number_of
from hw.oram.client.state import Header, SessionState, mark_of, secrets_of
from hw.oram.client.transport import Transport
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code

#: Least bytes of a master key.
MASTER_BYTES = 16
#: Commands of an operation that may be rejected before the operation is.
ATTEMPTS = 8
#: Most operations of a call.
CALL_OPERATIONS = 1 << 16
#: Responses opened at once.
_BATCH = 256


class Session:
    """The one owner of the numbers of a map, and all that the journal in its folder says.

    ``master``: the client's key, secret and random, at least 16 bytes; all keys of a map follow from it.
    ``folder``: of the journal; a file system of this machine. ``epochs``: the file of epochs, shared by all
    maps under these keys. ``journal_bytes``: size from which an idle journal is written anew.

    Behaviour
    ---------
    A command leaves in this order: its number is on the disk, it is sealed, it is written into the ring. So
    no number has two texts, whenever the process ends. Each epoch has keys of its own, derived from
    ``master``. A command without an answer is written again as it
    was. A response is noted before the next command takes its slot, so it is still there if the note is
    lost.
    """

    def __init__(
        self,
        folder: Path,
        config: OramConfig,
        *,
        master: bytes,
        transport: Transport,
        epochs: Path | None = None,
        journal_bytes: int = 1 << 26,
    ) -> None:
        self.config = config
        if len(master) < MASTER_BYTES:
            raise InputError("bytes of the master key", len(master), f"at least {MASTER_BYTES}")
        self._master = master
        self._transport = transport
        self._epochs = EpochFile(epochs or folder / "epochs")
        self._path = folder / "journal"
        self._journal_bytes = journal_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "lock")
        self._lock.__enter__()
        self._journal: Journal | None = None
        self._sealer: Sealer | None = None
        self._unusable = SessionError("")
        self._written = 0  # numbers below are in the ring
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the folder for another process. Unfinished calls stay in the journal."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._unusable = SessionError("the session is closed")
        self._lock.__exit__()

    @property
    def loaded(self) -> bool:
        """Whether the map was loaded to its end, as far as the journal knows."""
        return self._journal is not None and self._journal.state.loaded

    @property
    def state(self) -> SessionState:
        """The state of the journal.

        Raises `LostMapError` before the first epoch, `JournalError` for a damaged journal.
        """
        if self._journal is None:
            raise self._unusable
        return self._journal.state

    @property
    def full(self) -> bool:
        """Whether the journal must become idle before the next call, to be written anew."""
        return (
            self._journal is not None
            and self._journal.size_bytes > self._journal_bytes
            and bool(self.state.sent or self.state.unsent)
        )

    def begin(self) -> None:
        """Begin a new epoch with an empty map, and ask for its confirmation by a NOP.

        No call is accepted until the NOP is answered. Unfinished calls wait for the map's load.
        """
        old, above, carried = self._journal, 0, list[Call]()
        if old is not None:
            old.check()
            above = old.state.header.epoch
            carried = [call for call in old.state.calls if call.origin != LOADING]
        epoch = self._epochs.take(above=above)
        secrets = secrets_of(self._master, epoch)
        header = Header(
            epoch=epoch,
            mark=mark_of(self._master, epoch),
            slots=self._transport.slots,
            value_bytes=self.config.value_bytes,
            key_bits=self.config.key_bits,
            attempts=ATTEMPTS,
        )
        nop = events.make_call(LOADING, 1, [Operation(Code.NOP, 0, bytes(self.config.value_bytes))])
        if old is not None:
            old.retire()
        self._journal = Journal.create(self._path, header, [nop, *carried])
        self._sealer, self._written = Sealer(self.config, secrets), 0
        self._transport.initialize(secrets)

    def finish_load(self) -> None:
        """Note that the map is loaded: further calls are accepted."""
        self._used().record(events.loaded(), sync=True)

    def request(
        self, origin: int, operations: Sequence[Operation], *, number: int | None = None
    ) -> Call | Finished:
        """Accept a call, or find it: a client may repeat its last one, with the same number.

        Without ``number`` the call is new. It is on the disk before any of its commands leaves. Each origin
        has one call at a time.

        Raises `InputError` for a lower number than the last, or other operations under the same one.
        """
        journal = self._used()
        if not journal.state.loaded and origin != LOADING:
            raise LostMapError("the map is not loaded")
        if len(operations) > CALL_OPERATIONS:
            raise InputError("operations", len(operations), f"at most {CALL_OPERATIONS} in a call")
        highest = journal.state.highest(origin)
        call = events.make_call(origin, highest + 1 if number is None else number, operations)
        if call.number < max(highest, 1):
            raise InputError("number", number, f"at least {max(highest, 1)}")
        if call.number == highest:
            known = journal.state.find(origin, highest) or journal.state.last[origin]
            if known.checksum != call.checksum:
                raise InputError("operations", "others", f"those of the earlier call {highest}")
            return known
        if journal.state.is_busy(origin):
            raise InputError("call", call.number, f"behind the end of call {highest}")
        if journal.size_bytes > self._journal_bytes and not (journal.state.sent or journal.state.unsent):
            self._journal = journal = journal.compacted()
        journal.record(events.requested(call), sync=False)
        found = journal.state.find(origin, call.number)
        assert found is not None
        return found

    def forget(self, origin: int) -> None:
        """Drop the outcomes of a client that is done."""
        self._used().record(events.forgotten(origin), sync=False)

    def step(self) -> bool:
        """Read responses that are there, and send commands that have room; return whether there were any.

        Raises `LostMapError` when the engine has ended before it answered all commands.
        """
        ended = self._transport.ended()  # before the last look at the responses
        progress = self._receive()
        progress = self._send() or progress
        if ended and not progress and self.state.sent:
            raise LostMapError(f"the map is lost: {ended}")
        return progress

    def _used(self) -> Journal:
        if self._journal is None:
            raise self._unusable
        self._journal.check()
        return self._journal

    def _resume(self) -> None:
        """Open the journal, if it is there; commands without an answer are written again."""
        try:
            journal = Journal.open(self._path)
        except FileNotFoundError:
            self._unusable = LostMapError("no map was loaded")
            return
        except JournalError as error:
            self._unusable = error
            return
        self._journal = journal
        header = journal.state.header
        if header.mark != mark_of(self._master, header.epoch):
            raise JournalError(f"{self._path} is of another master key")
        for name, now, then in (
            ("slots of a ring", self._transport.slots, header.slots),
            ("value_bytes", self.config.value_bytes, header.value_bytes),
            ("key_bits", self.config.key_bits, header.key_bits),
        ):
            if now != then:
                raise InputError(name, now, f"{then}, as in {self._path}")
        secrets = secrets_of(self._master, header.epoch)
        self._sealer, self._written = Sealer(self.config, secrets), journal.state.answered

    def _receive(self) -> bool:
        """Note the responses that are in the ring, in order."""
        journal, found = self._used(), False
        assert self._sealer is not None
        while True:
            first, records = journal.state.answered, list[bytes]()
            for number in range(first, min(journal.state.next, first + _BATCH)):
                record = self._transport.read(number)
                if number_of(record) != number:
                    break
                records.append(record)
            outcomes = self._sealer.open(first, records) if records else []
            if not outcomes:
                return found
            journal.record(events.answered(outcomes), sync=False)
            self._written = max(self._written, journal.state.answered)
            found = True

    def _send(self) -> bool:
        """Assign numbers while the ring has room, half of it at least or all that wait; write commands."""
        journal = self._used()
        state, slots = journal.state, self._transport.slots
        count = min(len(state.unsent), slots - (state.next - state.answered))
        if count and (count == len(state.unsent) or count >= slots // 2):
            self._refuse_an_old_journal(state.next, count)
            journal.record(events.sent(count), sync=True)
        first = self._written
        if first == state.next:
            return False
        assert self._sealer is not None
        waiting = islice(state.sent, first - state.answered, None)
        operations = [call.operations[place] for call, place in waiting]
        for record in self._sealer.seal(first, operations):
            self._transport.write(self._written, record)
            self._written += 1
        return True

    def _refuse_an_old_journal(self, first: int, count: int) -> None:
        """Raise `JournalError` if the engine has answered a number that was never sent.

        The journal is then an old copy, and its next command would be a second text under a number.
        """
        assert self._sealer is not None
        for number in range(first, first + count):
            record = self._transport.read(number)
            other = number_of(record)
            if number <= other < 1 << 63 and self._sealer.open(other, [record]):
                raise JournalError(f"the map is ahead of {self._path}, an old copy: load a new map")
