"""The application in a browser: a page with its own table for everyone who knows the address."""

from __future__ import annotations

import asyncio
import hmac
import html
import os
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from string import Template

from aiohttp import WSCloseCode, web
from aiohttp.typedefs import Handler
from textual_serve import server as textual_server
from textual_serve.app_service import AppService

from busso.base.errors import UserError
from busso.base.system import heard
from busso.command.settings.quoting import key_of
from busso.play.app.too_small import LEAST_HEIGHT, LEAST_WIDTH
from busso.play.app.web_driver import DRIVER
from busso.play.language import Language
from busso.play.table.settings import APP, PlaySettings

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")  # accepted Host headers; any other name may be DNS rebinding
_PAGE = Path(__file__).with_name("page")
_TERMINAL = Path(textual_server.__file__).with_name("static")
_TYPES = {".css": "text/css", ".js": "text/javascript", ".ttf": "font/ttf"}
_OWN_KEYS = ("serve", "port", "ui")  # the server's, not passed to tables
_LIFELINE = Path(__file__).with_name("lifeline.py")
_SECONDS_TO_SAVE = 20.0  # after which a table is killed
_SECONDS_TO_END = 5.0  # additionally, for the processes to exit
_FONT_SIZES = range(6, 73)
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


def serve(settings: PlaySettings, arguments: Sequence[str]) -> int:
    """Serve tables, by the settings in `arguments`, until a signal; return the exit code. Raises UserError."""
    listening = _listen(settings.port)
    server = TableServer(table_command(arguments), Language(settings.lang))
    port = listening.getsockname()[1]
    for line in _told(server, settings, port):
        print(line, flush=True)
    loop = asyncio.new_event_loop()
    for number in heard((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        loop.add_signal_handler(number, server.request_exit)
    # An access log would contain the secret.
    web.run_app(
        server.application(), sock=listening, handle_signals=False, loop=loop, access_log=None, print=None,
        shutdown_timeout=_SECONDS_TO_SAVE + _SECONDS_TO_END,
    )  # fmt: skip
    return 0


def table_command(arguments: Sequence[str]) -> str:
    """Return the shell command for one table: this command line, in the application, under a lifeline."""
    kept = [each for each in arguments if key_of(each) not in _OWN_KEYS]
    table = [sys.executable, "-m", "busso.play", *kept, f"ui={APP}"]
    return "exec " + shlex.join([sys.executable, "-I", "-S", str(_LIFELINE), str(_SECONDS_TO_SAVE), *table])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError("port", f"{port} on {HOST}: {why}", "use another port, or port=0 for any") from None


def _told(server: TableServer, settings: PlaySettings, port: int) -> list[str]:
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


class TableServer(textual_server.Server):
    """Server that runs `command` for each page. Every path begins with a secret, and is refused without it."""

    def __init__(self, command: str, language: Language) -> None:
        super().__init__(command, title="busso")
        self.token = secrets.token_urlsafe()
        self._language = language
        self._files = {f"page/{path.name}": path for path in _PAGE.iterdir() if path.suffix in _TYPES}
        self._files |= {
            f"static/{path.relative_to(_TERMINAL)}": path for path in _TERMINAL.rglob("*") if path.suffix in _TYPES
        }
        self._open: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/{token}/", self._index),
                web.get("/{token}/ws", self._table),
                web.get("/{token}/{file:(?:page|static)/.+}", self._file),
            ]
        )
        app.on_shutdown.append(self._close)
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
        size = textual_server.to_int(request.query.get("fontsize", "16"), 16)
        values = {
            "lang": self._language.name,
            "websocket": f"ws://{request.host}/{self.token}/ws",
            "font_size": str(size if size in _FONT_SIZES else 16),
            "ended": self._language.say("serve.ended"),
            "again": self._language.say("serve.again"),
        }
        text = Template((_PAGE / "index.html").read_text(encoding="utf-8"))
        page = text.substitute({name: html.escape(value) for name, value in values.items()})
        return web.Response(text=page, content_type="text/html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = self._files.get(request.match_info["file"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path, headers={"Content-Type": _TYPES[path.suffix]})

    async def _table(self, request: web.Request) -> web.WebSocketResponse:
        """Run a table until its page is closed or the player leaves; it saves an unfinished game."""
        page = web.WebSocketResponse(heartbeat=15, timeout=2)

        async def close() -> None:
            await page.close()

        await page.prepare(request)
        width, height = (textual_server.to_int(request.query.get(name, ""), 0) for name in ("width", "height"))
        table = _PageProcess(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._open.add(page)
        try:
            await table.start(width or LEAST_WIDTH, height or LEAST_HEIGHT)
            await self._process_messages(page, table)
        finally:
            self._open.discard(page)
            await table.stop()
        return page

    async def _close(self, app: web.Application) -> None:
        """Close the pages, upon which their tables save."""
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in self._open))


class _PageProcess(AppService):
    """Process of a page, which ends with it."""

    def _build_environment(self, width: int = LEAST_WIDTH, height: int = LEAST_HEIGHT) -> dict[str, str]:
        return super()._build_environment(width, height) | {"TEXTUAL_DRIVER": DRIVER}

    async def run(self) -> None:
        """Forward the output until the process ends."""
        await super().run()
        await self.remote_close()

    async def stop(self) -> None:
        """Wait until the process has saved and ended, or its lifeline has killed it; both react to the closed pipe.

        Unread input is dropped, since a table that hangs would not read it.
        """
        self.stdin.transport.abort()
        if self._task is not None:
            await self._task

    async def on_data(self, payload: bytes) -> None:
        """Forward output; ignore a closed page, since the process still has to end."""
        with suppress(ConnectionError, RuntimeError):
            await super().on_data(payload)
