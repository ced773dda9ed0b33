"""The implementation of each request: a script, and the code around it.

Importing this package fills :data:`implementations`.
"""

from .. import task_waiting  # noqa: F401
from ..implementations import implementations as implementations
from . import contents, fair, forwarding, items, queues, results, tasks  # noqa: F401
