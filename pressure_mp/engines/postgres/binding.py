"""One queue in a database, as the sessions of its operations use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..contract.items import Put, Take
from ..contract.session import Options
from ..contract.tasks import TakeTasks
from ..shortcut import Shortcut
from .address import PostgresAddress
from .callers import Known
from .listener import Listener
from .pool import Pool
from .quick import Quick
from .statements import Statements


@dataclass(frozen=True)
class Binding:
    """A queue, and what its engine has for all queues of one schema."""

    name: str
    kind: str
    discipline: str
    options: Options
    address: PostgresAddress
    statements: Statements = field(compare=False)
    listener: Listener = field(compare=False)
    thread_pool: Pool = field(compare=False)
    #: The connections of callers that lead to the engine's database.
    known: Known = field(compare=False)
    quick: Quick = field(compare=False)
    #: Whether tasks of an event loop that wait for the same make their calls together.
    tries: Mapping[type, Shortcut] = field(
        default_factory=lambda: {kind: Shortcut() for kind in (Put, Take, TakeTasks)}, compare=False
    )

    @property
    def prefix(self) -> str:
        """The prefix of the engine's address."""
        return self.address.prefix
