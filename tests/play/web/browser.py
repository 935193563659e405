"""Headless Chromium, driven over the DevTools protocol, that plays in a served page and measures it."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from tests.limits import seconds

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_KEYS = {"Enter": (13, "\r"), "ArrowRight": (39, ""), "ArrowLeft": (37, ""), "Escape": (27, ""), " ": (32, " ")}
# The contrast of each text that can be read, with its background; a bar under a text is a background, too.
_CONTRASTS = """(() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05);
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = rgb(getComputedStyle(at).backgroundColor); if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  return [...document.querySelectorAll('#page *')].filter((node) => {
    const box = node.getBoundingClientRect();
    const text = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
    return text && box.width && !node.closest('[aria-disabled], .folded, option');
  }).flatMap((node) => {
    const card = node.closest('svg.card:not(.empty)'), style = getComputedStyle(node);
    const face = card && rgb(getComputedStyle(card.querySelector('.face')).fill);
    const bar = node.parentElement.querySelector(':scope > .fill');
    const grounds = [face || behind(node), ...(bar ? [rgb(getComputedStyle(bar).backgroundColor)] : [])];
    const ink = rgb(node instanceof SVGElement ? style.fill : style.color);
    return grounds.map((ground) => [contrast(ink, ground), node.textContent.trim().slice(0, 40)]);
  });
})()"""


class Browser:
    """A page in a new Chromium of some size; a narrow one is touched."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        self._folder = folder / "chromium"
        self._size, self._dark = (width, height), dark
        self.touches = width < 700
        self._number = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.asked: list[str] = []  # all requested addresses
        self.errors: list[str] = []  # of the script

    async def __aenter__(self) -> Browser:
        assert CHROMIUM is not None
        options = (
            "--headless=new --no-sandbox --remote-debugging-port=0 --test-type --no-first-run "
            "--disable-gpu --disable-dev-shm-usage --disable-background-networking"
        )
        self._folder.parent.mkdir(exist_ok=True)
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
        for domain in ("Network", "Page", "Runtime"):
            await self.call(f"{domain}.enable")
        width, height = self._size
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=self.touches
        )
        await self.call("Emulation.setTouchEmulationEnabled", enabled=self.touches)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if self._dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
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
            elif told["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(told["params"]["exceptionDetails"]))
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
            assert loop.time() - start < seconds(limit), f"{what} did not come"
            await asyncio.sleep(0.05)

    async def shows(self, text: str, limit: float = 20) -> None:
        """Wait for a text on the page."""
        await self.holds(f"document.body?.innerText.includes({json.dumps(text)})", limit)

    async def holds(self, condition: str, limit: float = 20) -> None:
        """Wait for a condition in JavaScript."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not await self.evaluate(condition):
            if loop.time() - start > seconds(limit):
                raise AssertionError(f"not {condition}:\n{await self.evaluate('document.body.innerText')}")
            await asyncio.sleep(0.05)

    async def open(self, address: str) -> None:
        """Open a page with a desk of its own."""
        await self.evaluate("location.protocol === 'http:' && sessionStorage.clear()")
        await self.call("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key: a letter, a digit, or a name."""
        number, text = _KEYS.get(key, (ord(key[0].upper()), key))
        typed = {"text": text} if text else {}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=number, **typed)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=number)

    async def tap(self, selector: str) -> None:
        """Touch the middle of the first such element, or click there where nothing is touched."""
        place = await self.evaluate(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            " it.scrollIntoView({block: 'center'}); const box = it.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        x, y = place
        if self.touches:
            await self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
            await self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def contrasts(self) -> list[tuple[float, str]]:
        """Return the contrast of each text with its background, the lowest first."""
        return sorted((float(value), text) for value, text in await self.evaluate(_CONTRASTS))

    async def runs_off(self) -> list[str]:
        """Return what is wider than the page, or left of it."""
        found: list[str] = await self.evaluate(
            "[...document.querySelectorAll('#page, #page *')].filter((node) => {"
            " const box = node.getBoundingClientRect();"
            " return box.width && (box.right > innerWidth + 1 || box.left < -1) && !node.closest('pre') })"
            ".map((node) => node.outerHTML.slice(0, 120))"
        )
        return found

    async def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"]))
