"""All operations of a queue of tasks, for producers, workers and administrators."""

from __future__ import annotations

from .task_administration import TaskAdministration
from .task_producing import TaskProducing
from .task_results import TaskResults
from .task_taking import TaskTaking


class TaskOperations(TaskProducing, TaskResults, TaskTaking, TaskAdministration):
    """Joins the parts."""
