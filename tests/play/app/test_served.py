"""Tables in a browser: access, resources, and saves by every page."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import aiohttp
import psutil
import pytest

from busso.play.app.serve import _ssh
from tests.limits import seconds, until
from tests.play.app.browser import CHROMIUM, Browser
from tests.play.conftest import Piped
from tests.play.people import ENVIRONMENT, replayed
from tests.processes import alive


class Served:
    """`busso play serve=true` in a new folder."""

    def __init__(self, folder: Path, *arguments: str, python: Sequence[str] = ("-m", "busso.play")) -> None:
        self.folder = folder
        environment = ENVIRONMENT | {"PYTHONUNBUFFERED": "1"}
        line = [sys.executable, *python, "serve=true", "port=0", *arguments]
        self._out = folder / "served.out"
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(line, cwd=folder, env=environment, stdout=out, stderr=out)
        until("an address", lambda: "Ctrl-C" in self.said or self.process.poll() is not None, 30)
        self.address = re.findall(r"http://127\.0\.0\.1:\d+/[\w-]{40,}/", self.said)[0]
        self.port = int(self.address.split(":")[2].split("/")[0])

    @property
    def said(self) -> str:
        return self._out.read_text()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds(30))


def folder_in(path: Path) -> Path:
    made = path / "it's a $folder"  # needs shell quoting
    made.mkdir()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_in(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a server as by nohup, for the tests that do not end it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    folder = folder_in(tmp_path_factory.mktemp("served"))
    server = Served(folder, "game=sette_mezzo", "limit=4", "seed=3", "pace=0", 'record="it\'s a $record.jsonl"')
    signal.signal(signal.SIGHUP, before)
    yield server
    assert server.end() == 0


def test_who_does_not_know_the_address_is_refused(served: Served) -> None:
    base, token = served.address[:-1].rsplit("/", 1)
    other = token[:-1] + ("A" if token[-1] != "A" else "B")
    paths = ("", f"{other}/", f"{other}/ws", f"{other}/static/js/textual.js", "static/js/textual.js", f"{token[:-1]}/")
    strange = ({"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Origin": "http://evil.example"})

    async def script() -> None:
        async with aiohttp.ClientSession() as http:

            async def status(address: str, **headers: str) -> int:
                async with http.get(address, headers=headers) as answer:
                    assert answer.status == 200 or "use the ssh command" in await answer.text() or answer.status == 404
                    return answer.status

            assert await status(served.address) == 200
            assert await status(f"{served.address}static/js/textual.js") == 200
            assert await status(f"http://localhost:{served.port}/{token}/") == 200
            for path in paths:
                assert await status(f"{base}/{path}") == 403, path
            for headers in strange:
                assert await status(served.address, **headers) == 403, headers
            assert await status(f"{served.address}static/../serve.py") == 404
            for address, headers in (f"{base}/{other}/ws", {}), *((f"{served.address}ws", each) for each in strange):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await http.ws_connect(address, headers=headers)
                assert refused.value.status == 403

    asyncio.run(script())
    # Printed once, to the person who started it; never in a request log.
    assert served.said.count(token) == 1 and f"ssh -N -L {served.port}:127.0.0.1:{served.port} " in served.said


def test_nohup_stays_nohup_for_the_server_and_its_tables(served: Served) -> None:
    """Unfinished games are saved when their pages are closed."""

    async def script() -> None:
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{served.address}ws?width=80&height=24") as page:
            await _turn(page)
            server = psutil.Process(served.process.pid)
            processes = [server, *server.children(recursive=True)]
            assert len(processes) == 3  # including lifeline and table
            for each in processes:
                status = Path(f"/proc/{each.pid}/status").read_text()
                assert int(re.findall(r"SigIgn:\s*(\w+)", status)[0], 16) >> (signal.SIGHUP - 1) & 1, each

    before = _saves(served.folder)
    asyncio.run(script())
    until("a save", lambda: len(_saves(served.folder)) > len(before), 20)
    (name,) = _saves(served.folder) - before
    until("the way back", lambda: f"resume with busso play save=saves/{name}" in served.said, 20)


def _saves(folder: Path) -> set[str]:
    """Return the complete saves; one being written has another name."""
    return {path.name for path in (folder / "saves").glob("[!.]*.json")}


def test_a_port_in_use_is_one_line(served: Served, piped: Piped) -> None:
    code, out, err = piped("", "serve=true", f"port={served.port}")
    assert code == 2 and out == ""
    assert err.startswith(f"error: port: {served.port} on 127.0.0.1: Address already in use; use another")


def test_a_node_is_reached_through_its_login_node(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SLURM_JOB_ID", "8"), ("SLURMD_NODENAME", "node1"), ("SLURM_SUBMIT_HOST", "login")):
        monkeypatch.setenv(name, value)
    assert _ssh("me", 4567) == "ssh -N -J me@login -L 4567:127.0.0.1:4567 me@node1"
    monkeypatch.delenv("SLURM_JOB_ID")
    assert _ssh("me", 4567) == f"ssh -N -L 4567:127.0.0.1:4567 me@{socket.gethostname()}"


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_hand_in_the_browser(served: Served, tmp_path: Path) -> None:
    async def script() -> None:
        async with Browser(tmp_path) as browser:
            await browser.open(served.address)
            await browser.shows("Your turn", 40)
            await browser.click("1 stick")
            await browser.shows("The game is over")
            await browser.press("n")
            await browser.shows("Your turn")
            await browser.press("2")
            await browser.shows("Seat 0: hit")
            own = f"{served.address.rsplit('/', 2)[0]}/".removeprefix("http")
            away = [address for address in browser.asked if own not in address and not address.startswith("data:")]
            assert away == []  # no external requests

    asyncio.run(script())
    assert replayed(served.folder / "it's a $record.jsonl")


async def _turn(page: aiohttp.ClientWebSocketResponse) -> None:
    """Wait until the page asks for a move."""
    said = ""
    while "Your turn" not in said:
        said += (await page.receive_bytes(timeout=seconds(40))).decode()


SHORT_GRACE = (
    "import sys, busso.play.app.serve as s, busso.play.__main__ as p; s._SECONDS_TO_SAVE = 2; p.main(sys.argv[1:])"
)


@pytest.mark.slow  # starts two tables, and one runs into its grace time
@pytest.mark.parametrize("ending", ["page", signal.SIGHUP, signal.SIGKILL])
def test_a_table_that_hangs_ends_with_its_page_and_with_the_server(folder: Path, ending: str | int) -> None:
    """Also if the server is killed; the other table saves."""
    server = Served(folder, "game=sette_mezzo", "limit=4", "seed=3", "pace=0", python=("-c", SHORT_GRACE))
    tables: list[psutil.Process] = []

    async def script() -> None:
        address = f"{server.address}ws?width=80&height=24"
        async with aiohttp.ClientSession() as http, http.ws_connect(address) as one, http.ws_connect(address) as other:
            for page in (one, other):
                await _turn(page)
            below = psutil.Process(server.process.pid).children(recursive=True)
            tables.extend(process for process in below if process.cmdline()[1:3] == ["-m", "busso.play"])
            assert len(tables) == 2
            tables[0].suspend()
            if ending == "page":
                await asyncio.gather(one.close(), other.close())
            else:
                server.process.send_signal(int(ending))
            await asyncio.to_thread(until, "no tables", lambda: not alive(table.pid for table in tables), 20)

    asyncio.run(script())
    assert [path.name for path in (folder / "saves").iterdir()] == ["sette_mezzo-3.json"]
    if ending == "page":
        assert server.process.poll() is None and server.end() == 0
    elif ending == signal.SIGHUP:
        assert server.process.wait(seconds(20)) == 0
        assert "resume with busso play save=saves/sette_mezzo-3.json" in server.said
    else:
        server.process.wait()
