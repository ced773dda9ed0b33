"""A task, as its taker or an administrator in asyncio holds it."""

from __future__ import annotations

from types import TracebackType

from ... import states
from ...engines.cancelled_calls import LAST_SECONDS, to_its_end
from ...exceptions import PressureError
from ...handles.base_task import BaseTask, Data
from ...sync.tasks import task as sync
from ..awaited import Awaiting, awaited


class Task(BaseTask[Data], Awaiting):
    """:class:`pressure_mp.Task` for asyncio: ``async with await tasks.take() as task``.

    At the end of the block it is acknowledged, released or buried as there. When the block is
    cancelled, the task is released at once. A caller that is cancelled meanwhile, or again, waits
    up to a second for that.
    """

    __slots__ = ()

    ack = awaited(sync.Task[Data].ack)
    forward = awaited(sync.Task[Data].forward)
    release = awaited(sync.Task[Data].release)
    bury = awaited(sync.Task[Data].bury)
    touch = awaited(sync.Task[Data].touch)
    progress = awaited(sync.Task[Data].progress)
    fail = awaited(sync.Task[Data].fail)

    async def __aenter__(self) -> Task[Data]:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind, error, traceback)
        if self.state != states.TAKEN or (self.is_staged and error is None):
            return
        if error is None:
            await to_its_end(self.ack(), LAST_SECONDS)
            return
        try:
            await to_its_end(self.fail(error), LAST_SECONDS)
        except PressureError:
            pass  # it is no longer ours, or ttr gives it back; the block's own error says more

    def __repr__(self) -> str:
        return f"<aio.{super().__repr__()[1:]}"
