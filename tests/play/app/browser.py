"""Headless Chromium, driven over the DevTools protocol, that plays in a served page and reads its text."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from tests.limits import seconds

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Textual moves the cursor to the beginning of each text that it writes.
_TEXTS = re.compile(r"\x1b\[(\d+);(\d+)H((?:\x1b\[[\d;]*m|[^\x1b])*)")
_STYLES = re.compile(r"\x1b\[[\d;]*m")


class Browser:
    """A page in a new Chromium."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "chromium"
        self._number = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.written = ""  # to the terminal
        self.asked: list[str] = []  # all requested addresses

    async def __aenter__(self) -> Browser:
        assert CHROMIUM is not None
        # `--test-type` suppresses the bar about the sandbox, which appears late and takes two terminal lines.
        options = (
            "--headless=new --no-sandbox --remote-debugging-port=0 --window-size=1280,800 --test-type --no-first-run "
            "--disable-gpu --disable-dev-shm-usage --disable-background-networking"
        )
        self._log = (self._folder.parent / "chromium.log").open("wb")
        command = [CHROMIUM, *options.split(), f"--user-data-dir={self._folder}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        told = self._folder / "DevToolsActivePort"
        await self.until("Chromium", lambda: told.exists() and "\n" in told.read_text(), 30)
        port = told.read_text().splitlines()[0]
        self._http = aiohttp.ClientSession()
        async with self._http.get(f"http://127.0.0.1:{port}/json") as answer:
            page = next(each for each in await answer.json() if each["type"] == "page")
        self._socket = await self._http.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._listening = asyncio.create_task(self._listen())
        await self.call("Network.enable")
        await self.call("Page.enable")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.cancel()
        await self._socket.close()
        await self._http.close()
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 30)
        self._log.close()

    async def _listen(self) -> None:
        async for received in self._socket:
            told = json.loads(received.data)
            if "id" in told:
                self._replies.pop(told["id"]).set_result(told)
            elif told["method"] == "Network.webSocketFrameReceived":
                frame = told["params"]["response"]
                if frame["opcode"] == 2:
                    self.written += base64.b64decode(frame["payloadData"]).decode()
            elif told["method"] == "Network.requestWillBeSent":
                self.asked.append(told["params"]["request"]["url"])
            elif told["method"] == "Network.webSocketCreated":
                self.asked.append(told["params"]["url"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        reply = self._replies[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        told = await asyncio.wait_for(reply, seconds(20))
        assert "error" not in told, told
        return told["result"]

    async def until(self, what: str, seen: Callable[[], object], limit: float = 20) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not seen():
            assert loop.time() - start < seconds(limit), f"{what} did not come\n{self._texts()}"
            await asyncio.sleep(0.05)

    async def shows(self, text: str, limit: float = 20) -> None:
        await self.until(repr(text), lambda: any(text in each for _, _, each in self._texts()), limit)

    def _texts(self) -> list[tuple[int, int, str]]:
        """Return what was written: row, column and text."""
        return [(int(y) - 1, int(x) - 1, _STYLES.sub("", text)) for y, x, text in _TEXTS.findall(self.written)]

    async def open(self, address: str) -> None:
        await self.call("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a letter or digit, and forget what was written before."""
        self.written = ""
        code = f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        common = {"key": key, "code": code, "windowsVirtualKeyCode": ord(key.upper())}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=key, **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def click(self, text: str) -> None:
        """Click on a text in the terminal, whose characters all have the same size."""
        row, column = next((y, x + each.index(text)) for y, x, each in reversed(self._texts()) if text in each)
        size = await self.evaluate(
            "(() => { const box = document.querySelector('.xterm-screen').getBoundingClientRect();"
            " return [box.left, box.top, box.width, box.height] })()"
        )
        columns, rows = map(int, re.findall(r"width=(\d+)&height=(\d+)", self.asked[-1])[0])
        x = size[0] + (column + 0.5) * size[2] / columns
        y = size[1] + (row + 0.5) * size[3] / rows
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
