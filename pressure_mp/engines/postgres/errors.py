"""What the server says went wrong, and what is to be done about it."""

from __future__ import annotations

import re

from ...exceptions import (
    BrokerError,
    BrokerFull,
    BrokerUnavailable,
    PressureError,
    WrongServerError,
)

#: SQLSTATEs after which nothing was done, and the same call may succeed later or elsewhere: the
#: server starts, ends, recovers, has no connection left, or ended one that was idle.
_NOT_NOW = re.compile(r"57P0[1235]|53300|08...")
#: Like these: a standby refused to write, or the session may only read.
_READ_ONLY = "25006"
#: Those after which it may succeed at once: a deadlock, a conflict.
_AGAIN = re.compile(r"40...")
#: There is no such schema, table, function or function of these parameters.
_NOT_INSTALLED = re.compile(r"3F000|42P01|42883|42704")
#: The call was made before.
MADE_BEFORE = "23505"
#: Something cannot be removed: the server says only in the detail what depends on it.
DEPENDED_ON = b"2BP01"
#: The disk is full, or the memory.
_FULL = ("53100", "53200")
#: What libpq says of a server that may be there soon.
_SOON = re.compile(
    r"starting up|shutting down|recovery|too many (clients|connections)|remaining connection slots"
    r"|Connection refused|timeout|timed out|No such file|server closed the connection"
    r"|could not (connect|translate|receive|send)|No route|unreachable|reset by peer"
    r"|read-only|not in hot standby|session is not read-write",
    re.IGNORECASE,
)


#: What a server, or a pooler, says of what will be the same when it is tried again. That has no
#: SQLSTATE here, and may be in any language: what is not understood is tried again.
_NEVER = re.compile(
    r"authentication failed|pg_hba\.conf|does not exist|no such (user|database)|permission denied"
    r"|not permitted|not currently accepting|configuration parameter|value for parameter"
    r"|startup parameter|command-line argument|unsupported|must be (superuser|owner)"
)


class ConnectionLost(BrokerUnavailable):
    """No reply came: what was sent may have been done."""


class NotNow(BrokerUnavailable):
    """The server did nothing, and may later, or another one may."""


class ReadOnly(NotNow):
    """The session may only read."""


class NotInstalled(BrokerError):
    """The database has no such schema, or one of another version."""


class Forbidden(BrokerError):
    """The role lacks a right."""

    #: The message, without what is to be done.
    refused = ""


class NotPrepared(BrokerError):
    """The server's connection does not have the statements that this one prepared."""


class MadeBefore(PressureError):
    """A call came twice; the second one did nothing."""


def unreachable(message: str, shown: str) -> PressureError:
    """The error for a connection that could not be opened."""
    text = " ".join(message.split())
    problem = f"no connection to the database at {shown}: {text}"
    if "FATAL" in text and _NEVER.search(text) and not _SOON.search(text):  # of none of the hosts
        return WrongServerError(problem)
    return BrokerUnavailable(problem)


def refusal(state: str, message: str, shown: str, schema: str) -> PressureError:
    """The error for a statement that failed."""
    text = " ".join(message.split()).removeprefix("ERROR: ")
    if state == MADE_BEFORE and "calls_pkey" in text:
        return MadeBefore(text)
    if _NOT_NOW.fullmatch(state) or _AGAIN.fullmatch(state):
        return NotNow(f"the database at {shown} cannot do it now: {text}")
    if state == _READ_ONLY:
        return ReadOnly(f"the database at {shown} cannot do it now: {text}")
    if _NOT_INSTALLED.fullmatch(state):
        return NotInstalled(
            f"the database at {shown} has no schema {schema} of this version ({text}): install it "
            f"by pressure-mp postgres install --url URL, or open it with ?create=1"
        )
    if state in _FULL:
        return BrokerFull(
            f"the database at {shown} has no space left: {text}. Nothing was done. Get items, "
            "purge queues that nobody needs, or give the server more space"
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
    advice = "nothing was done"
    if state == "57014":
        advice = "its statement_timeout, or somebody, ended the statement: " + advice
    elif state == "55P03":
        advice = "its lock_timeout is shorter than others needed at this queue: " + advice
    return BrokerError(f"{refused}; {advice}")
