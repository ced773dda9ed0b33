"""The web application of the service: ``uvicorn web:app``."""

from jobs import reports
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from pressure_mp import BrokerUnavailable, ResultTimeout, TaskNotFound, aio

queue = aio.TaskQueue.of(reports)


async def order(request):
    id = await queue.put(await request.json(), result_ttl=3600)  # the result is kept for an hour
    return JSONResponse({"id": id}, 202)


async def report(request):
    try:
        return JSONResponse(await queue.result(request.path_params["id"], timeout=0))
    except ResultTimeout:
        return JSONResponse({"state": "not ready"}, 202)
    except TaskNotFound:
        return JSONResponse({"error": "no such report"}, 404)
    except ValueError as error:  # of the handler, in the worker
        return JSONResponse({"error": str(error)}, 422)


async def unavailable(request, error):
    return JSONResponse({"error": "the broker does not answer"}, 503)


app = Starlette(
    routes=[Route("/reports", order, methods=["POST"]), Route("/reports/{id:int}", report)],
    exception_handlers={BrokerUnavailable: unavailable},
)
