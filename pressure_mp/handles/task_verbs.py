"""What the verbs of a queue of tasks share in both worlds, that of threads and asyncio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..drivers import noting
from ..effects import AnyOperation, T
from ..encoding.task_values import check_tube, milliseconds
from ..engines.contract.task_records import TaskRecord
from ..events import Destination
from ..exceptions import PressureError
from ..in_flight import Claim
from ..operations.task_queue import DecodedTask
from ..operations.task_taking import Delivery
from ..states import VOID
from .backoff import Backoff
from .base_task import BaseTask, Data, TaskOrId, check_on_error
from .handle import BaseHandle
from .tasks import TaskAttachment, id_of

if TYPE_CHECKING:
    import typing_extensions

    #: A task of one world.
    AnyTask = typing_extensions.TypeVar("AnyTask", bound=BaseTask[Any], default=Any)
else:
    AnyTask = TypeVar("AnyTask")


class TaskVerbs(BaseHandle, Generic[Data, AnyTask]):
    """Runs operations whose results are tasks. In asyncio each method returns a coroutine."""

    _at: TaskAttachment
    #: The class of the tasks of this world.
    _task_class: Callable[..., Any]

    # As the handles of each world have them.
    _run: Callable[..., Any]
    _run_in: Callable[..., Any]
    _acknowledge: Callable[..., Any]
    _then: Callable[..., Any]
    #: Runs an operation that takes tasks, which go back if the call is interrupted.
    _claim: Callable[..., Any]

    @property
    def _destination(self) -> Destination:
        """The queue, for listeners."""
        return self._at.operations.destination

    def _task(self, id: bytes, record: TaskRecord, data: Any) -> AnyTask:
        """Make a task as its user sees it."""
        found: AnyTask = self._task_class(self, id, data, record)
        return found

    def _task_of(self, found: DecodedTask) -> AnyTask:
        return self._task(*found)

    def _tasks_of(self, found: list[DecodedTask]) -> list[AnyTask]:
        return [self._task(*task) for task in found]

    def _processed(self, found: tuple[DecodedTask, bool]) -> tuple[AnyTask, bool]:
        task, processed = found
        return self._task(*task), processed

    def _run_put(self, putting: AnyOperation[T], connection: object | None) -> T:
        """Run an operation that puts; with a ``connection``, in its transaction."""
        if connection is not None:
            forwarded: T = self._run_in(connection, putting)
            return forwarded
        put: T = self._run(putting, self._at.while_open)
        return put

    def _take(
        self,
        then: Callable[[list[AnyTask], PressureError | None, dict[int, PressureError]], T],
        number: int,
        timeout: float | None,
        ttr: float | None,
        tube: str | None,
        on_error: str,
        backoff: Backoff | None,
        acks: Sequence[AnyTask] = (),
        retries_alone: bool = False,
        apart: bool = False,
        note: Callable[[bool], None] | None = None,
        worker: int = 0,
    ) -> T:
        """Take up to ``number`` tasks, and return what ``then`` makes of a :data:`Delivery`. Tell
        ``note`` when this begins to wait, and when it stops. ``worker`` is the number of the worker
        that takes, see :meth:`~.background.takers.Takers.announced`."""
        self._at.check_open()
        check_on_error(on_error, backoff)
        own_ttr = None if ttr is None else milliseconds("ttr", ttr, least=0.001)
        how = number, check_tube(tube), own_ttr, timeout, acks, retries_alone, apart

        def take(claim: Claim) -> AnyOperation[Delivery[AnyTask]]:
            call = claim.begin(worker)
            taking = self._at.operations.take(self._task, self._at.here, call, *how)
            return taking if note is None else noting(taking, note)

        def hand_out(found: Delivery[AnyTask]) -> T:
            for task in found[0]:
                task.on_error, task.backoff = on_error, backoff
            return then(*found)

        taken: T = self._claim(take, hand_out, bool(acks))
        return taken

    def _take_for_run(
        self,
        worker: int,
        number: int,
        done: Sequence[AnyTask],
        timeout: float | None,
        note: Callable[[bool], None] | None,
        **options: Any,
    ) -> Any:
        """Take up to ``number`` tasks for a run, after acknowledging ``done``. ``options`` is
        :attr:`Job.taking`."""
        options |= {"note": note, "worker": worker}
        return self._take(_all, number, timeout, acks=done, apart=True, **options)

    def _acknowledge_for_run(self, done: list[AnyTask]) -> Any:
        """Acknowledge tasks. Returns the errors of the tasks that cannot be acknowledged, by their
        place."""
        return self._acknowledge(self._at.acking(done))

    def _release_unbegun(self, task: TaskOrId) -> AnyTask:
        """Give back a task that no handler began: the take counts as no delivery."""
        return self._settle("release", task, unbegun=True)

    def _settle(self, verb: str, task: TaskOrId, *options: Any, **more: Any) -> AnyTask:
        """Settle a task that was taken."""
        settle = getattr(self._at.operations, verb)
        settling = settle(self._at.subject(task), self._at.here, *options, **more)
        settled: AnyTask = self._then(self._run(settling), self._task_of)
        return settled

    def _change(self, verb: str, task: TaskOrId, *to: Any, **options: Any) -> AnyTask:
        """Change a task, as an administrator."""

        def become(found: DecodedTask) -> AnyTask:
            changed = self._task(*found)
            if isinstance(task, BaseTask):
                task.become(changed)
            if changed.state == VOID:
                self._at.here.note_removed(changed.id_bytes)
            return changed

        changing = self._at.operations.change(verb, id_of(task), *to, **options)
        changed: AnyTask = self._then(self._run(changing), become)
        return changed


def _all(
    tasks: list[T], problem: PressureError | None, refused: dict[int, PressureError]
) -> Delivery[T]:
    return tasks, problem, refused
