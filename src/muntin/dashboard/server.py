"""The web server of the page: the page itself, a stream of frames to it, and its commands."""

from __future__ import annotations

import json
import socket
import threading
import time as clocks
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from muntin.dashboard.access import COOKIE, Access
from muntin.dashboard.commands import obey
from muntin.dashboard.frames import Frames, View
from muntin.dashboard.shown_stream import ShownStream
from muntin.drawing.svg_elements import DARK, LIGHT
from muntin.errors import MuntinError, QueryError

try:
    import anyio.to_thread
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders, QueryParams
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
except ModuleNotFoundError as error:
    package = (error.name or "starlette").partition(".")[0]
    raise QueryError(
        f'the dashboard needs {package}, which is not installed: pip install "muntin[dashboard]"'
    ) from error

__all__ = ["application", "running", "serve"]

PAUSE = 0.15
"""Seconds between two frames: faster than that, numbers cannot be read."""
SILENCE = 10.0
"""Seconds after which a comment shows both sides that the connection lives."""
MOST_BYTES, MOST_PAGES = 16_384, 16
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""The page runs its own script and nothing else: no inline code, no evaluation, no other host."""
KINDS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def application(stream: ShownStream, access: Access, ends: Callable[[], bool] = lambda: False) -> Any:
    """The ASGI application that shows this stream, until the server `ends`."""
    pages = [0]
    page = files("muntin.dashboard") / "page"

    async def index(_: Request) -> Response:
        return Response((page / "index.html").read_bytes(), media_type="text/html")

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in KINDS:
            return PlainTextResponse("there is no such file", 404)
        body = (page / name).read_text("utf-8")
        if name == "page.css":
            body = f"{body}\n{_picture_colours()}"
        return Response(body, media_type=KINDS[name])

    async def events(request: Request) -> Response:
        if pages[0] >= MOST_PAGES:
            return PlainTextResponse(f"{MOST_PAGES} pages are open; close one", 503)
        return StreamingResponse(_frames(stream, request, pages, ends), media_type="text/event-stream")

    async def command(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return JSONResponse({"error": f"a command has at most {MOST_BYTES:,} bytes"}, 413)
        try:
            outcome = await anyio.to_thread.run_sync(obey, stream, body)
        except MuntinError as error:
            return JSONResponse({"error": str(error)}, 400)
        except Exception as error:  # noqa: BLE001 - a defect: the page shows it, the terminal its place
            traceback.print_exc()
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 500)
        return JSONResponse(outcome)

    routes = [
        Route("/", index),
        Route("/events", events),
        Route("/command", command, methods=["POST"]),
        Route("/{name}", asset),
    ]
    return _Guarded(Starlette(routes=routes), access)


async def _frames(
    stream: ShownStream, request: Request, pages: list[int], ends: Callable[[], bool]
) -> AsyncIterator[str]:
    """Changed sections as server-sent events, until the page is closed or the server ends."""
    frames = Frames(stream, View.of(request.query_params))
    pages[0] += 1
    silent = 0.0
    try:
        while not (ends() or await request.is_disconnected()):
            began = clocks.monotonic()
            frame = await anyio.to_thread.run_sync(_next, frames)
            if frame is not None:
                silent = 0.0
                yield f"data: {json.dumps(frame, default=str)}\n\n"
            elif silent >= SILENCE:
                silent = 0.0
                yield ": still here\n\n"
            # A page uses at most a third of the time that the stream could have.
            pause = max(PAUSE, 2 * (clocks.monotonic() - began))
            await anyio.sleep(pause)
            silent += pause
    finally:
        pages[0] -= 1


def _next(frames: Frames) -> dict[str, Any] | None:
    try:
        return frames.next()
    except MuntinError as error:
        return {"trouble": str(error)}
    except Exception as error:  # noqa: BLE001 - without an answer the page would take it for a lost connection
        traceback.print_exc()
        return {"trouble": f"{type(error).__name__}: {error}"}


# Access and headers. ---------------------------------------------------------------------------------


class _Guarded:
    """Refuses requests that `Access` refuses, and adds the headers that protect the page."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        token = QueryParams(scope["query_string"]).get("token")
        changes = scope["method"] not in ("GET", "HEAD")
        refusal = self._access.refusal(Headers(scope=scope), token, changes)

        async def guarded_send(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if token is not None and refusal is None and self._access.token is not None:
                    headers.append("set-cookie", f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        answer = self._app
        if refusal is not None:
            answer = JSONResponse({"error": refusal}, 403) if changes else PlainTextResponse(refusal, 403)
        await answer(scope, receive, guarded_send)


def _picture_colours() -> str:
    """The colours of `muntin.drawing`, for pictures without a style sheet of their own."""
    both = {name: f"light-dark({light}, {DARK[name]})" for name, light in LIGHT.items()}
    return "".join(f"svg.drawn .{name} {{ stroke: {c}; fill: {c} }}\n" for name, c in both.items())


# Running. --------------------------------------------------------------------------------------------


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(100)  # from here on a browser may connect
    except (OSError, OverflowError) as error:
        listener.close()
        raise QueryError(
            f"cannot serve on {host}, port {port}: {error}; choose another with --port"
        ) from error
    return listener


def _server(stream: ShownStream, listener: socket.socket, host: str, token: str | None) -> tuple[Any, Access]:
    access = Access.to(host, listener.getsockname()[1], token)
    config = uvicorn.Config(
        application(stream, access, lambda: server.should_exit), log_level="error", access_log=False,
        timeout_graceful_shutdown=1,
        server_header=False, ws="none", lifespan="off",
    )  # fmt: skip
    server = uvicorn.Server(config)
    return server, access


def _opened(access: Access) -> str:
    return access.address + ("" if access.token is None else f"/?token={access.token}")


def serve(
    stream: ShownStream,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the page until Ctrl-C; `ready` gets its address.

    Args:
        stream: What it shows.
        host: Other hosts than loopback need a token, which is part of the address.
        port: 0 chooses a free one.
        token: In place of a random one.
        ready: Called once, when the page can be opened.
    """
    listener = _listening(host, port)
    server, access = _server(stream, listener, host, token)
    stream.start()
    try:
        ready(_opened(access))
        server.run(sockets=[listener])
    finally:
        stream.close()
        listener.close()


@contextmanager
def running(stream: ShownStream, host: str = "127.0.0.1", token: str | None = None) -> Iterator[str]:
    """Serve the page in a thread; yields its address.

    >>> from muntin.dashboard.feeds import Feed
    >>> from muntin.dashboard.live_stream import LiveStream
    >>> import muntin as mt
    >>> from muntin import windows as w, aggregates as a
    >>> query = mt.windows(ten=w.tumbling(10)).aggregate(n=a.count()).on("t")
    >>> with running(LiveStream([Feed("nothing", query, tuple, rate=1)])) as address:
    ...     print(address.rpartition(":")[0])
    http://127.0.0.1
    """
    listener = _listening(host, 0)
    server, access = _server(stream, listener, host, token)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    stream.start()
    thread.start()
    try:
        yield _opened(access)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        stream.close()
        listener.close()
