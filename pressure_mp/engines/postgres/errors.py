"""Translate errors of the server into exceptions that say what to do."""

from __future__ import annotations

import re

from ...exceptions import (
    BrokerError,
    BrokerFull,
    BrokerUnavailable,
    CallCancelledError,
    PressureError,
    WrongServerError,
)

#: SQLSTATEs after which nothing was done, and the same call may succeed later or elsewhere: the
#: server starts, ends, recovers, has no connection or file left, could not read or write a file, or
#: ended an idle connection. 0A000: it is a standby, which cannot read unlogged tables; or the
#: connection prepared a function that was installed anew.
_NOT_NOW = re.compile(r"57P0[1235]|53[03]00|58030|08...|0A000")
#: Another of these: a standby refused to write, or the session may only read.
_READ_ONLY = "25006"
#: SQLSTATEs after which the call may succeed at once: a deadlock, a conflict.
_AGAIN = re.compile(r"40...")
#: The schema, table or function, or a function with these parameters, does not exist.
_NOT_INSTALLED = re.compile(r"3F000|42P01|42883|42704")
#: The call was made before.
MADE_BEFORE = "23505"
#: An object cannot be removed: only the detail of the error says what depends on it.
DEPENDED_ON = b"2BP01"
#: The disk is full, or the memory.
_FULL = ("53100", "53200")
#: Why a call was ended that may succeed another time, by the SQLSTATE.
_CANCELLED = {
    "57014": "its statement_timeout, or a pg_cancel_backend(), ended the statement",
    "55P03": "its lock_timeout is shorter than other calls kept this queue locked",
}
#: Messages of libpq about a server that may answer soon.
_SOON = re.compile(
    r"starting up|shutting down|recovery|too many (clients|connections)|remaining connection slots"
    r"|Connection refused|timeout|timed out|No such file|server closed the connection"
    r"|could not (connect|translate|receive|send)|No route|unreachable|reset by peer"
    r"|read-only|not in hot standby|session is not read-write",
    re.IGNORECASE,
)


#: Messages of a server, or a pooler, about an error that another try will not change. They have no
#: SQLSTATE here, and may be in any language: after a message that is not recognized, the call is
#: tried again.
_NEVER = re.compile(
    r"authentication failed|pg_hba\.conf|does not exist|no such (user|database)|permission denied"
    r"|not permitted|not currently accepting|configuration parameter|value for parameter"
    r"|startup parameter|command-line argument|unsupported|must be (superuser|owner)"
)


class ConnectionLost(BrokerUnavailable):
    """No reply came: the call may have been done."""


class NotNow(BrokerUnavailable):
    """The server did nothing; a later try, or another server, may succeed."""


class ReadOnly(NotNow):
    """The session may only read."""


class NotInstalled(BrokerError):
    """The database does not have the schema, or has it in another version."""


class Forbidden(BrokerError):
    """The role lacks a right."""

    #: The message, without the advice.
    refused = ""


class NotPrepared(BrokerError):
    """The backend does not have the statements that this connection prepared."""


class MadeBefore(PressureError):
    """A call came twice; the second time did nothing."""


def unreachable(message: str, shown: str) -> PressureError:
    """Make the error for a connection that could not be opened."""
    text = " ".join(message.split())
    problem = f"no connection to the database at {shown}: {text}"
    if "FATAL" in text and _NEVER.search(text) and not _SOON.search(text):  # of no host
        return WrongServerError(problem)
    return BrokerUnavailable(problem)


def refusal(state: str, message: str, shown: str, schema: str) -> PressureError:
    """Make the error for a statement that failed."""
    text = " ".join(message.split()).removeprefix("ERROR: ")
    if state == MADE_BEFORE and "calls_pkey" in text:
        return MadeBefore(text)
    if _NOT_NOW.fullmatch(state) or _AGAIN.fullmatch(state):
        return NotNow(f"the database at {shown} is not ready: {text}")
    if state == _READ_ONLY:
        return ReadOnly(
            f"the database at {shown} is not ready: {text}; if it is a standby, the URL should "
            "name its primary, or all hosts with target_session_attrs=read-write"
        )
    if _NOT_INSTALLED.fullmatch(state):
        return NotInstalled(
            f"the database at {shown} has no schema {schema} of this version ({text}): install it "
            f"by pressure-mp postgres install --url URL, or open it with ?create=1"
        )
    if state in _FULL:
        return BrokerFull(
            f"the database at {shown} has no space left: {text}. Nothing was done. Get items, "
            "purge unused queues, or give the server more space"
        )
    if state in ("42P05", "26000"):
        return NotPrepared(
            f"the database at {shown} refuses: {text}; a pooler gives each transaction another "
            "connection: say ?prepare=0 in the URL"
        )
    refused = f"the database at {shown} refuses: {text}"
    if state == "42501":
        error = Forbidden(f"{refused}; grant this role what pressure-mp postgres grant ROLE prints")
        error.refused = refused
        return error
    if (why := _CANCELLED.get(state)) is not None:
        return CallCancelledError(f"{refused}; {why}: nothing was done")
    return BrokerError(f"{refused}; nothing was done")
