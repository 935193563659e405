"""The page in Chromium: a hand of each game by touch and by keyboard, its size, its contrast, its first paint."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits import seconds
from tests.play.web.browser import CHROMIUM, Browser
from tests.play.web.test_served import Served, folder_in

GAMES = ("tressette", "spike", "blackjack", "sette_mezzo")
SIZES = {"phone": (390, 844), "desk": (1280, 800)}
LEAST = 44  # pixels of a card
AA = 4.5
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
_OVER = "!!document.querySelector('[data-do=next]')"
# The person's actions so far; a coach's remark, which may come later, is none.
_MOMENT = "[...document.querySelectorAll('.log p')].filter((it) => it.textContent.startsWith('Seat 0')).length"
_MINE = f"!!document.querySelector('.prompt.yours') || {_OVER}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a server whose pages begin in the menu."""
    server = Served(folder_in(tmp_path_factory.mktemp("served")), "pace=0")
    yield server
    assert server.end() == 0
    assert "Traceback" not in server.said


def _each(selector: str, value: str) -> str:
    return f"[...document.querySelectorAll('{selector}')].map((it) => {value})"


async def _sit_down(browser: Browser, address: str, game: str) -> None:
    await browser.open(address)
    await browser.holds("document.querySelectorAll('.rows label').length > 0", 40)
    await browser.tap(f"[data-do=game][data-value={game}]")
    await browser.holds(f"!!document.querySelector('[data-value={game}][aria-current]')")
    await (browser.tap("[data-do=play]") if browser.touches else browser.press("p"))
    await browser.holds(_MINE, 60)


async def _act(browser: Browser, game: str) -> None:
    """Take an action: a card that may be played, or the second action of several."""
    asked = await browser.evaluate(_MOMENT)
    if game == "tressette" and browser.touches:
        await browser.tap(".held:not([aria-disabled])")
    elif game == "tressette":
        await browser.evaluate("document.activeElement.blur()")
        await browser.press("ArrowRight")
        await browser.press("Enter")
    elif browser.touches:
        await browser.tap("[data-do=choose]:nth-child(2)")
    else:
        await browser.press("2")
    await browser.holds(f"{_MOMENT} !== {json.dumps(asked)}")


async def _well_laid_out(browser: Browser) -> None:
    """Nothing runs off, cards are large enough, and texts can be read."""
    assert await browser.runs_off() == []
    widths = await browser.evaluate(
        "[...document.querySelectorAll('svg.card')].map((it) => it.getBoundingClientRect().width)"
    )
    assert all(width >= LEAST for width in widths), widths
    contrasts = await browser.contrasts()
    assert contrasts[0][0] >= AA, contrasts[:5]
    assert browser.errors == []


@pytest.mark.slow  # a minute: four games, with players that compile
@pytest.mark.timeout(300)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_hand_of_each_game_by_touch_and_by_keyboard(served: Served, tmp_path: Path, size: str, dark: bool) -> None:
    async def script() -> None:
        async with Browser(tmp_path, *SIZES[size], dark) as browser:
            for game in GAMES:
                await _sit_down(browser, served.address, game)
                await _well_laid_out(browser)
                for _ in range(60):
                    if await browser.evaluate(_OVER):
                        break
                    await browser.holds(_MINE)
                    if not await browser.evaluate(_OVER):
                        await _act(browser, game)
                await browser.holds(_OVER, 40)
                await _well_laid_out(browser)
                shown = await browser.evaluate("document.querySelector('.board').innerText")
                assert "over" in shown or "You" in shown, (game, shown)

    asyncio.run(script())


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("size", "dark"), [("phone", False), pytest.param("desk", True, marks=pytest.mark.slow)])
def test_a_review_draws_the_tricks_and_leads_to_each_decision_from_the_graph(
    tmp_path: Path, size: str, dark: bool
) -> None:
    server = Served(folder_in(tmp_path), "game=tressette", "seed=4", "pace=0")

    async def script() -> None:
        async with Browser(tmp_path, *SIZES[size], dark) as browser:
            await browser.open(server.address)
            await browser.holds(_MINE, 60)
            while not await browser.evaluate(_OVER):
                await _act(browser, "tressette")
                await browser.holds(_MINE)
            await browser.tap("[data-do=review]")
            await browser.holds("document.querySelectorAll('.plot .mark').length > 3", 60)
            tricks = await browser.evaluate(_each(".round", "it.querySelectorAll('svg.card').length"))
            assert tricks == [4] * 10
            taken = await browser.evaluate(_each(".round", "it.querySelectorAll('.highest').length"))
            assert taken == [1] * 10
            decisions = await browser.evaluate("document.querySelectorAll('button.move').length")
            wrong = await browser.evaluate(_each(".mark.mistake", "it.getAttribute('aria-label')"))
            assert await browser.evaluate("document.querySelectorAll('.plot .mark').length") == decisions
            assert wrong and wrong == await browser.evaluate(_each(".move.mistake", "it.getAttribute('aria-label')"))
            await _well_laid_out(browser)
            for line in wrong:  # each mark leads to its decision, which says what it cost
                await browser.tap(f".mark.mistake[aria-label={json.dumps(line)}]")
                await browser.holds(
                    f"document.querySelector('.decision [role=status]').innerText === {json.dumps(line)}"
                )
                current = _each("[data-do=at][aria-current]", "it.getAttribute('aria-label')")
                assert await browser.evaluate(current) == [line, line]  # the mark, and the card in its trick
                assert await browser.evaluate("document.querySelectorAll('.values .played').length") == 1
            await browser.tap("[data-value=previous_mistake]")
            before = json.dumps(wrong[max(len(wrong) - 2, 0)])
            await browser.holds(f"document.querySelector('.decision [role=status]').innerText === {before}")

    try:
        asyncio.run(script())
    finally:
        server.end()


def test_the_first_paint_and_the_menu(served: Served, tmp_path: Path) -> None:
    """Also: nothing is asked of other sites, the language of the page is that of its texts, and cards have names."""

    async def script() -> None:
        async with Browser(tmp_path, 390, 844) as browser:
            await browser.open(served.address)
            await browser.shows("Opponents", 40)
            paint = await browser.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            assert paint < 1000 * seconds(1)
            await _well_laid_out(browser)
            await browser.tap("[data-do=language]")
            await browser.shows("Avversari")
            assert await browser.evaluate("document.documentElement.lang") == "it"
            await browser.tap("[data-do=play]")
            await browser.shows("Tocca a te", 60)
            names = await browser.evaluate(
                "[...document.querySelectorAll('.held')].map((it) => it.getAttribute('aria-label'))"
            )
            assert len(names) == 10 and all(" di " in name for name in names)
            await browser.press("t")
            await browser.holds("document.querySelectorAll('.held .worth.best').length > 0", 60)
            own = f"{served.address.rsplit('/', 2)[0]}/".removeprefix("http")
            away = [address for address in browser.asked if own not in address and not address.startswith("data:")]
            assert away == []

    asyncio.run(script())


@pytest.mark.parametrize("width", [390, 760, 2560])
def test_no_width_makes_anything_run_off(served: Served, tmp_path: Path, width: int) -> None:
    async def script() -> None:
        async with Browser(tmp_path, width, 900) as browser:
            await _sit_down(browser, served.address, "blackjack")
            await browser.press("l")  # Q-learning begins, and its table fills
            await browser.holds("document.querySelectorAll('.cells td.minus').length > 20", 60)
            assert await browser.runs_off() == []
            await browser.press("q")
            await browser.shows("Saved tables")
            assert await browser.runs_off() == []

    asyncio.run(script())


def test_a_page_that_comes_back_finds_its_table(served: Served, tmp_path: Path) -> None:
    async def script() -> None:
        async with Browser(tmp_path, 390, 844) as browser:
            await _sit_down(browser, served.address, "tressette")
            hand = _each(".held", "it.getAttribute('aria-label')")
            before = await browser.evaluate(hand)
            await browser.call("Page.reload")
            await browser.holds("document.querySelectorAll('.held').length > 0")
            assert await browser.evaluate(hand) == before

    asyncio.run(script())
