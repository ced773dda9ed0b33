"""Which function does which request on a server. Those in ``requests`` do."""

from __future__ import annotations

from ..contract.implementations import Implementations
from .caller import Caller

#: Each is given the caller, the request and the end of the call.
implementations: Implementations[Caller, [float | None]] = Implementations()
does = implementations.does
