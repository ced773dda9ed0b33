"""A web service that hands work to processes, tells when it is full, and streams the results.

Install starlette and uvicorn. Start the service, and as many workers as you like, on any machines:

    PRESSURE_URL=redis://localhost python examples/web_service.py worker
    PRESSURE_URL=redis://localhost uvicorn examples.web_service:app --timeout-graceful-shutdown 10
    curl -N http://localhost:8000/factors/stream -d '{"numbers": [60, 97, 1001]}'

A job is a list of numbers, whose prime factors the workers compute. The answer has a line of JSON
for each number, as soon as it is there. When MAXSIZE jobs are queued, the answer is 503, and its
header Retry-After tells in how many seconds the jobs that are queued will be taken.

The results of each job go through a queue of its own, for LINES results. A client that reads slowly
keeps it full: then the worker hands the rest of the job back, behind the other jobs, and takes the
next one. A client that goes away takes that queue with it, and the worker drops the job. A worker
may be killed: its job goes to another one, and what was sent before is not sent again.
"""

import asyncio
import json
import math
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypedDict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pressure_mp import Full, JoinableQueue, Queue, QueueDoesNotExistError, ShutDown, aio

JOBS = "factor-jobs"
MAXSIZE = int(os.environ.get("SERVICE_MAXSIZE", "100"))  # jobs; the same for all
LINES = 20  # results of one job that wait for its client
PATIENCE = 0.1  # seconds after which a worker hands back a job whose client does not read
GIVE_UP = 60.0  # seconds after which the job of such a client is dropped
LARGEST, BODY = 10**13, 200_000  # the largest number, and how many bytes a job may have

Line = dict[str, float | list[int]]  # one result, or the last line: how many seconds all took
Result = tuple[int, Line]  # with its place in the job


class Job(TypedDict):
    results: str  # the name of the queue for its results
    numbers: list[int]
    done: int  # how many lines were handed over
    line: Line | None  # the next one, if it was computed
    seconds: float  # that were spent on the lines
    read: float  # when its client last read something


# The workers


def factors(number: int) -> list[int]:
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return [*found, number] if number > 1 else found


def next_line(job: Job) -> Line:
    if job["done"] == len(job["numbers"]):
        return {"seconds": job["seconds"]}
    began, number = time.perf_counter(), job["numbers"][job["done"]]
    line: Line = {"number": number, "factors": factors(number)}
    job["seconds"] += time.perf_counter() - began
    return line


def do(job: Job, results: Queue[Result], jobs: JoinableQueue[Job]) -> None:
    """Do the job; or, when its client does not read, put it back or drop it."""
    while job["done"] <= len(job["numbers"]):
        line = job["line"] = job["line"] or next_line(job)
        try:
            results.put((job["done"], line), timeout=PATIENCE)
            job["done"], job["line"], job["read"] = job["done"] + 1, None, time.time()
        except Full:
            if time.time() - job["read"] > GIVE_UP:
                return results.delete()
            with suppress(Full):  # if there is no space, this worker waits on
                return jobs.put_nowait(job)
    results.shutdown()


def work() -> None:
    """A worker process. It may be ended at any time: its job is not lost."""
    jobs: JoinableQueue[Job] = JoinableQueue(MAXSIZE, JOBS, serializer="json")
    for job in jobs:
        with suppress(ShutDown, QueueDoesNotExistError):  # the client has gone away
            do(job, Queue.attach(job["results"], serializer="json"), jobs)
        jobs.task_done()


# The service


class Service:
    def __init__(self) -> None:
        self.jobs: aio.JoinableQueue[Job] = aio.JoinableQueue(MAXSIZE, JOBS, serializer="json")
        self.streams: set[aio.Queue[Result]] = set()
        self.seconds_per_job = 1.0  # of a worker, about, in the last jobs

    async def retry_after(self) -> int:
        """In how many seconds the jobs that are queued will be taken. The jobs in flight are
        with workers: so many workers are busy."""
        stats = await self.jobs.stats()
        return math.ceil(self.seconds_per_job * max(stats.length, 1) / max(stats.in_flight, 1))

    async def end(self, results: aio.Queue[Result]) -> None:
        """No client reads these results any more: their job ends."""
        with suppress(QueueDoesNotExistError):
            await results.delete()
        self.streams.discard(results)


class Stream(StreamingResponse):
    """The results of a job. The job ends with the response, however that ends."""

    def __init__(self, service: Service, results: aio.Queue[Result]) -> None:
        super().__init__(self.lines(), media_type="application/x-ndjson")
        self.service, self.results = service, results

    async def lines(self) -> AsyncIterator[str]:
        sent = 0
        with suppress(QueueDoesNotExistError):  # the job was dropped, or the service ends
            async for place, line in self.results:
                if place < sent:
                    continue  # another worker began where a killed one had begun
                sent = place + 1
                if isinstance(took := line.get("seconds"), float):
                    self.service.seconds_per_job += 0.2 * (took - self.service.seconds_per_job)
                yield json.dumps(line) + "\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.service.end(self.results)


async def numbers_in(request: Request) -> list[int] | None:
    """The numbers in the request, or None if they cannot be used."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > BODY:
            return None
    try:
        numbers: list[int] = json.loads(body)["numbers"]
        return numbers if all(type(n) is int and 0 < n <= LARGEST for n in numbers) else None
    except (ValueError, TypeError, KeyError):
        return None


async def stream(request: Request) -> Response:
    service: Service = request.state.service
    numbers = await numbers_in(request)
    if numbers is None:
        return JSONResponse({"error": f"numbers from 1 to {LARGEST}, in {BODY} bytes"}, 400)
    name = f"{JOBS}-{uuid.uuid4().hex}"
    results: aio.Queue[Result] = await aio.Queue.create(name, LINES, serializer="json")
    service.streams.add(results)
    new = Job(results=name, numbers=numbers, done=0, line=None, seconds=0.0, read=time.time())
    try:
        await service.jobs.put_nowait(new)
    except aio.QueueFull:
        await service.end(results)
        headers = {"Retry-After": str(await service.retry_after())}
        return JSONResponse({"error": "there are too many jobs"}, 503, headers)
    return Stream(service, results)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Service]]:
    service = Service()
    async with service.jobs:
        yield {"service": service}
        # uvicorn has waited for its responses, and cancelled the rest: the jobs of these end now.
        await asyncio.gather(*map(service.end, service.streams))


app = Starlette(routes=[Route("/factors/stream", stream, methods=["POST"])], lifespan=lifespan)

if __name__ == "__main__":
    if sys.argv[1:] != ["worker"]:
        sys.exit("usage: web_service.py worker")
    work()
