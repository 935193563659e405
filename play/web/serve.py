"""Web server of the table: a page with its own table for everyone who knows the address.

The server sends the content of the page as HTML over a WebSocket, and page/page.js morphs it in place. aiohttp and
Jinja2 are dependencies anyway, so the page adds no package. NiceGUI 3 would add 32 packages (56 MB), Starlette with
uvicorn[standard] 9 (19 MB).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.typedefs import Handler

from busso.base.errors import UserError
from busso.base.system import heard
from busso.play.language import Language
from busso.play.table.settings import Given, PlaySettings
from busso.play.web.desk import Desk
from busso.play.web.host import FILES, template

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")  # accepted Host headers; any other name may be DNS rebinding
_TYPES = {".css": "text/css", ".js": "text/javascript"}
# Keys that say how to play, not what, and the server's: with these alone a page starts in the menu.
_HOW = {"ui", "lang", "pace", "record", "hint", "serve", "port"}
_SECONDS_AWAY = 300.0  # for which the table of a page without a connection waits for it
_SECONDS_TO_SAVE = 20.0  # after which the server ends with a table that hangs
_MOST_BYTES = 4096  # of a message from the page
_WRONG = (
    f"403: wrong address. Open the address that busso printed, with its secret, on {HOST} or localhost. A proxy "
    "changes the address: use the ssh command printed beside it.\n"
)
_HEADERS = {
    # Load nothing from and send nothing to other sites, and forbid framing by other pages.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def serve(settings: PlaySettings, given: Given) -> NoReturn:
    """Serve tables by these settings until a signal, and end the process. Raises UserError."""
    listening = _listen(settings.port)
    server = TableServer(settings, {key: value for key, value in given.items() if key not in ("ui", "serve", "port")})
    port = listening.getsockname()[1]
    for line in _address_lines(server, settings, port):
        print(line, flush=True)
    asyncio.run(server.run(listening))
    # Everything is saved. Players, coaches and learners may still compute in threads, and Python would wait or abort.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError("port", f"{port} on {HOST}: {why}", "use another port, or port=0 for any") from None


def _address_lines(server: TableServer, settings: PlaySettings, port: int) -> list[str]:
    import getpass

    say = Language(settings.lang).say
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = "USER"
    return [
        say("serve.address", address=f"http://{HOST}:{port}/{server.token}/"),
        say("serve.remote", command=_ssh(user, port)),
        say("serve.then"),
    ]


def _ssh(user: str, port: int) -> str:
    """Return the ssh command that reaches the port from another machine; to a node, by its login node."""
    node, jump = socket.gethostname(), ""
    if "SLURM_JOB_ID" in os.environ:
        node = os.environ.get("SLURMD_NODENAME", node)
        jump = f"-J {user}@{os.environ.get('SLURM_SUBMIT_HOST', 'LOGIN-NODE')} "
    return f"ssh -N {jump}-L {port}:{HOST}:{port} {user}@{node}"


class TableServer:
    """Server with a desk for each page. Every path begins with a secret, and is refused without it."""

    def __init__(self, settings: PlaySettings, given: Given) -> None:
        self.token = secrets.token_urlsafe()
        self._settings = settings
        self._given = given if given.keys() - _HOW else {}
        self._desks: dict[str, Desk] = {}  # by the page's name for its own
        self._pages: dict[str, web.WebSocketResponse] = {}  # of the desks with a connection
        self._leaving: dict[str, asyncio.TimerHandle] = {}  # of the desks without one
        self._ended = asyncio.Event()

    async def run(self, listening: socket.socket) -> None:
        """Serve until a signal, then save all tables; a table that hangs does not hold the process for long."""
        loop = asyncio.get_running_loop()
        for number in heard((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            loop.add_signal_handler(number, self._ended.set)
        # An access log would contain the secret.
        runner = web.AppRunner(self.application(), access_log=None, handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        await self._ended.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(desk.close() for desk in self._desks.values())), _SECONDS_TO_SAVE)
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in [*self._pages.values()]))
        await runner.cleanup()

    def application(self) -> web.Application:
        """Return the routes behind the guard."""
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/{token}/", self._index),
                web.get("/{token}/ws", self._desk),
                web.get("/{token}/{file:.+}", self._file),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests without the secret, with an unknown host name, or from another page."""
        given = [*request.path.split("/"), ""][1].encode(errors="replace")
        origin = request.headers.get("Origin")
        known = hmac.compare_digest(given, self.token.encode())
        local = request.host.rsplit(":", 1)[0] in _NAMES
        if not (known and local and origin in (None, f"http://{request.host}")):
            return web.Response(status=403, text=_WRONG, headers=_HEADERS)
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    async def _index(self, request: web.Request) -> web.Response:
        page = template("index.html").render(language=Language(self._settings.lang))
        return web.Response(text=page, content_type="text/html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = FILES / request.match_info["file"]
        if path.parent != FILES or path.suffix not in _TYPES or not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path, headers={"Content-Type": _TYPES[path.suffix]})

    async def _desk(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a page to its desk, a new one if it has none here or if another page has it."""
        page = web.WebSocketResponse(heartbeat=15, timeout=2, max_msg_size=_MOST_BYTES)
        await page.prepare(request)
        name = request.query.get("desk", "")
        if name not in self._desks or name in self._pages:
            name = secrets.token_urlsafe()
            self._desks[name] = Desk(self._settings, self._given)
            await page.send_json({"desk": name})
        desk, self._pages[name] = self._desks[name], page
        if name in self._leaving:
            self._leaving.pop(name).cancel()
        sending = desk.start(self._send(desk, page))
        try:
            async for message in page:
                if message.type is WSMsgType.TEXT:
                    _receive(desk, message.data)
        finally:
            sending.cancel()
            del self._pages[name]
            desk.rest()
            self._leaving[name] = asyncio.get_running_loop().call_later(_SECONDS_AWAY, self._forget, name)
        return page

    async def _send(self, desk: Desk, page: web.WebSocketResponse) -> None:
        """Send what the desk shows whenever it changes."""
        desk.changed.set()
        while True:
            await desk.changed.wait()
            desk.changed.clear()
            shown = desk.page()
            with suppress(ConnectionError, RuntimeError):  # the page has gone
                await page.send_json(shown)

    def _forget(self, name: str) -> None:
        del self._leaving[name]
        self._desks.pop(name).end()


def _receive(desk: Desk, text: str) -> None:
    """Pass a message of the page to its desk; ignore any other text."""
    with suppress(ValueError, RecursionError):
        message = json.loads(text)
        if isinstance(message, dict):
            desk.receive(str(message.get("do", "")), str(message.get("value", "")), str(message.get("key", "")))
