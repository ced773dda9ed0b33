"""The errors of FoundationDB that are simulated, by their numbers."""

from __future__ import annotations

DESCRIPTIONS = {
    1007: "Transaction is too old to perform reads or be committed",
    1009: "Request for future version",
    1020: "Transaction not committed due to conflict with another transaction",
    1021: "Transaction may or may not have committed",
    1025: "Operation aborted because the transaction was cancelled",
    1031: "Operation aborted because the transaction timed out",
    1032: "Too many watches currently set",
    1036: "Read or wrote an unreadable key",
    1037: "Storage process does not have recent mutations",
    1039: "Cluster has been upgraded to a new protocol version",
    1101: "Asynchronous operation cancelled",
    2000: "Invalid API call",
    2004: "Key outside legal range",
    2005: "Range begin key larger than end key",
    2006: "Option set with an invalid value",
    2007: "Option not valid in this context",
    2015: "Future not ready",
    2017: "Operation issued while a commit was outstanding",
    2021: "Transaction is read-only and therefore does not have a commit version",
    2101: "Transaction exceeds byte limit",
    2102: "Key length exceeds limit",
    2103: "Value length exceeds limit",
    2203: "API version is not supported",
    2210: "EXACT streaming mode requires limits, but none were given",
}
MAYBE_COMMITTED = frozenset({1021, 1039})
NOT_COMMITTED = frozenset({1007, 1009, 1020, 1037})
RETRYABLE = MAYBE_COMMITTED | NOT_COMMITTED


class Failed(Exception):
    """What a function of the library answers with a number."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Unreachable(Exception):
    """The cluster does not answer now."""
