"""The rules of queues: what each request does, over state that an engine keeps in its own way.

An engine supplies the state: Python's mappings and the types of :mod:`.kinds`, :mod:`.storage`,
:mod:`.line` and :mod:`.task_line`. It does one request of a queue at a time.
"""

from . import (  # noqa: F401 - their import fills the tables of functions
    administration,
    brokers,
    deliveries,
    fair,
    forwarding,
    inboxes,
    items,
    large,
    opening,
    settling,
    tasks,
)
