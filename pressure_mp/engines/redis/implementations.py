"""The table of the functions in ``requests``, which do requests on a server."""

from __future__ import annotations

from ..contract.implementations import Implementations
from .caller import Caller

#: Each gets the caller, the request and the end of the call.
implementations: Implementations[Caller, [float | None]] = Implementations()
does = implementations.does
