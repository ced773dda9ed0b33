"""How each request of the contract is done: a script, and what has to be done around it.

To import this is to have all of them in :data:`implementations`.
"""

from .. import task_waiting  # noqa: F401
from ..implementations import implementations as implementations
from . import contents, fair, items, queues, results, tasks  # noqa: F401
