"""Errors of a client's session with a map."""

from hw.errors import LoomworkError


class SessionError(LoomworkError):
    """An operation could not be finished."""


class JournalError(SessionError):
    """The journal is damaged, in use, of another map, or older than the map."""


class EpochError(SessionError):
    """No epoch is sure to be new: the file is damaged, or the clock is not set."""


class LostMapError(SessionError):
    """The map is gone, or not loaded: `hw.oram.client.client.Client.load` makes a new one."""


class NoAnswerError(SessionError):
    """The host delivers no response; the call stays in the journal and is finished later."""


class RejectedError(SessionError):
    """The engine rejected each of an operation's commands, which the host changed: it had no effect."""


class MapFullError(SessionError):
    """A put found no room for its key: it had no effect."""
