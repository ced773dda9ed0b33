"""The implementation of each request: a script, and the code around it.

Importing this package fills :data:`implementations`.
"""

from .. import task_waiting  # noqa: F401
from ..caller import implementations as implementations
from . import contents, forwarding, items, queues, tasks  # noqa: F401
