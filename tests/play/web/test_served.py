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
import pytest
from aiohttp.test_utils import TestClient, TestServer

from busso.play.web import serve
from busso.play.web.serve import TableServer, _ssh
from tests.limits import seconds, until
from tests.play.conftest import Piped
from tests.play.people import ENVIRONMENT, composed


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
    paths = ("", f"{other}/", f"{other}/ws", f"{other}/page.js", "page.js", f"{token[:-1]}/")
    strange = ({"Host": "evil.example"}, {"Host": "evil.example:80"}, {"Origin": "http://evil.example"})

    async def script() -> None:
        async with aiohttp.ClientSession() as http:

            async def status(address: str, **headers: str) -> int:
                async with http.get(address, headers=headers) as answer:
                    assert answer.status == 200 or "use the ssh command" in await answer.text() or answer.status == 404
                    return answer.status

            assert await status(served.address) == 200
            assert await status(f"{served.address}page.js") == 200
            assert await status(f"http://localhost:{served.port}/{token}/") == 200
            for path in paths:
                assert await status(f"{base}/{path}") == 403, path
            for headers in strange:
                assert await status(served.address, **headers) == 403, headers
            assert await status(f"{served.address}..%2Fserve.py") == 404
            for address, headers in (f"{base}/{other}/ws", {}), *((f"{served.address}ws", each) for each in strange):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await http.ws_connect(address, headers=headers)
                assert refused.value.status == 403

    asyncio.run(script())
    # Printed once, to the person who started it; never in a request log.
    assert served.said.count(token) == 1 and f"ssh -N -L {served.port}:127.0.0.1:{served.port} " in served.said


def test_a_page_that_closes_leaves_a_save_and_nohup_stays_nohup(served: Served) -> None:
    async def script() -> None:
        async with aiohttp.ClientSession() as http, http.ws_connect(f"{served.address}ws") as page:
            await _turn(page)
            status = Path(f"/proc/{served.process.pid}/status").read_text()
            assert int(re.findall(r"SigIgn:\s*(\w+)", status)[0], 16) >> (signal.SIGHUP - 1) & 1

    before = _saves(served.folder)
    asyncio.run(script())
    until("a save", lambda: len(_saves(served.folder)) > len(before), 20)


def test_two_pages_have_two_tables_and_a_desk_is_taken_by_one_page(served: Served) -> None:
    async def script() -> None:
        async with aiohttp.ClientSession() as http:
            names = []
            for _ in range(2):
                async with http.ws_connect(f"{served.address}ws") as page:
                    names.append((await page.receive_json(timeout=seconds(20)))["desk"])
                    async with http.ws_connect(f"{served.address}ws?desk={names[-1]}") as other:
                        assert (await other.receive_json(timeout=seconds(20)))["desk"] != names[-1]
            assert names[0] != names[1]
            async with http.ws_connect(f"{served.address}ws?desk={names[0]}") as page:
                assert "html" in await page.receive_json(timeout=seconds(20))
                for text in ("", "[]", "[" * 4000, '{"do": 1}', '{"do": "__init__"}', '{"do": "choose", "value": {}}'):
                    await page.send_str(text)
                await _turn(page)

    asyncio.run(script())


def test_a_page_that_comes_back_in_time_keeps_its_table_for_the_next_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    away = seconds(1)

    async def script() -> None:
        settings, _ = composed("pace=0")
        server = TableServer(settings, {})
        async with TestClient(TestServer(server.application())) as client:
            address = f"/{server.token}/ws"
            monkeypatch.setattr(serve, "_SECONDS_AWAY", away)
            async with client.ws_connect(address) as page:
                name = (await page.receive_json())["desk"]
            monkeypatch.setattr(serve, "_SECONDS_AWAY", 10 * away)
            async with client.ws_connect(f"{address}?desk={name}") as page:
                assert "html" in await page.receive_json()
            await asyncio.sleep(1.5 * away)
            async with client.ws_connect(f"{address}?desk={name}") as page:
                assert "html" in await page.receive_json()

    asyncio.run(script())


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


async def _turn(page: aiohttp.ClientWebSocketResponse) -> None:
    """Wait until the page asks for a move."""
    said = ""
    while "Your turn" not in said:
        said = str(await page.receive_json(timeout=seconds(40)))


SHORT_GRACE = (
    "import sys, busso.play.web.serve as s, busso.play.__main__ as p; s._SECONDS_TO_SAVE = 2; p.main(sys.argv[1:])"
)
HANGS = """
import time
from pathlib import Path


class Hangs:
    def __init__(self, game):
        pass

    def begin(self, seeds):
        pass

    def act(self, decisions):
        time.sleep(1000 if Path("hang").exists() else 0)
        return [(int(mask) & -int(mask)).bit_length() - 1 for mask in decisions.legal]
"""


@pytest.mark.parametrize("ending", [signal.SIGHUP, signal.SIGKILL])
def test_a_table_that_hangs_neither_keeps_the_server_nor_loses_its_game(folder: Path, ending: signal.Signals) -> None:
    """Also if the server is killed; the other table saves."""
    (folder / "hangs.py").write_text(HANGS)
    hangs = "opponents=./hangs.py:Hangs", "partner=greedy"
    server = Served(folder, "game=tressette", "seed=3", "pace=0", *hangs, python=("-c", SHORT_GRACE))

    async def script() -> None:
        address = f"{server.address}ws"
        async with aiohttp.ClientSession() as http, http.ws_connect(address) as one, http.ws_connect(address) as other:
            for page in (one, other):
                await _turn(page)
            (folder / "hang").touch()
            said = "Your turn"
            while "is thinking" not in said:
                for action in range(40 if "Your turn" in said else 0):  # one of them is legal
                    await one.send_json({"do": "choose", "value": str(action)})
                said = str(await one.receive_json(timeout=seconds(20)))
            server.process.send_signal(ending)
            await asyncio.to_thread(server.process.wait, seconds(20))

    asyncio.run(script())
    assert _saves(folder) == {"tressette-3.json", "tressette-3-2.json"}
    if ending == signal.SIGHUP:
        assert server.process.returncode == 0
        assert "save=saves/tressette-3" in server.said
