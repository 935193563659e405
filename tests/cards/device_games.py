"""Random games by the kernels of `cards.gpu` and by the CPU loops, compared bit for bit.

`python -m tests.cards.device_games spike 4` does it for four games of Spike, in Numba's simulator with
NUMBA_ENABLE_CUDASIM=1.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.compiled.batch import reward_loop
from cards.compiled.bits import lowest
from cards.compiled.splitmix import derive, stream
from cards.game import Game, load_game
from cards.gpu import DeviceGames, NoDeviceError, on_device, on_host
from cards.play import Decisions, Player
from cards.players import named_player

# Options that reach what the default ones leave out.
VARIANTS = {
    "tressette": {"signals": True, "first_leader": "four_of_denari", "accusi": True},
    "spike": {
        "seats": 4, "min_seats": 2, "hands": 3, "rotate": True, "raise_cap": 2, "sabacc_pot": True,
        "special_hands": True, "credits": 16,
    },
    "sette_mezzo": {"limit": 6.5},
    "blackjack": {"decks": 1, "soft_17": "hit", "ties": "push"},
}  # fmt: skip


def expect(found: object, wanted: NDArray[Any], what: str) -> None:
    """Raise AssertionError unless the array on the device is the same, bit for bit."""
    array = on_host(found)
    assert array.dtype == wanted.dtype, f"{what}: {array.dtype}"
    assert same(array, wanted), f"{what} differ from the CPU's"


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Bit for bit; records field by field, for what lies between the fields is nobody's."""
    return bool((one == other).all()) if one.dtype.names else one.tobytes() == other.tobytes()


class Both:
    """The same games on the device and on the CPU, played by one player in all seats."""

    def __init__(self, game: Game, games: int, reward: str, player: str) -> None:
        self.game, self.count, self.name = game, games, f"{game.name}, {player}, reward {reward}"
        self.rows = np.arange(games)
        self.seeds = stream(11, "device games", 0, games)
        self.states = game.deal(self.seeds)
        self.totals = np.zeros((games, game.seats), np.float32)
        self.advance = reward_loop(game.rules.apply, game.rewards[reward])
        self.player: Player = named_player(game, player)
        self.player.begin(derive(self.seeds, 0))
        self.policy = game.policies.get(player)
        self.device = DeviceGames(game, games, game.rewards[reward])
        self.device_totals = on_device(self.totals)
        self.generators = on_device(derive(self.seeds, 0))
        self.device.deal(on_device(self.seeds))
        expect(self.device.states, self.states, f"{self.name}: deals")

    def legal(self) -> tuple[NDArray[np.uint64], object]:
        """Compare the masks of legal actions; they, on both."""
        masks, legal = on_device(np.zeros(self.count, np.uint64)), self.game.legal(self.states)
        self.device.legal(masks)
        expect(masks, legal, f"{self.name}: legal actions")
        return legal, masks

    def look(self) -> None:
        """Compare what else there is to see."""
        game, device = self.game, self.device
        turn = on_device(np.zeros(self.count, np.uint8))
        seen = on_device(np.zeros((self.count, game.words), np.uint64))
        device.turn(turn)
        device.observe(seen)
        expect(turn, np.ascontiguousarray(self.states["turn"]), f"{self.name}: seats to move")
        assert (game.over(self.states) == (game.legal(self.states) == 0)).all()
        expect(seen, game.observe(self.states), f"{self.name}: observations")

    def move(self, legal: NDArray[np.uint64], masks: object) -> None:
        """One action in every running game, chosen and played on both."""
        running = np.flatnonzero(legal)
        decisions = Decisions(self.game, self.states, running, legal[running])
        actions = np.zeros(self.count, np.uint8)
        actions[running] = self.player.act(decisions)
        chosen = on_device(np.zeros(self.count, np.uint8))
        if self.policy is None:
            self.device.random(masks, self.generators, chosen)
        else:
            self.device.policy(self.policy, masks, self.generators, chosen)
        expect(chosen, actions, f"{self.name}: choices")
        self.device.apply(masks, chosen, self.device_totals)
        self.advance(self.states, running, actions[running], self.totals)
        expect(self.device.states, self.states, f"{self.name}: states")
        expect(self.device_totals, self.totals, f"{self.name}: rewards")

    def play(self, look: bool) -> int:
        """Play to the end of every game, and `look` at every position; how many rounds that took."""
        rounds = 0
        while True:
            if look:
                self.look()
            legal, masks = self.legal()
            if not legal.any():
                break
            self.move(legal, masks)
            rounds += 1
        self.device.check()
        out = on_device(np.zeros((self.count, self.game.seats), np.float32))
        self.device.returns(out)
        expect(out, self.game.returns(self.states), f"{self.name}: results")
        return rounds


def compare(name: str, games: int) -> list[str]:
    """Every reward and every player at least once; both the default options and those that reach all rules.

    What a seat sees depends on neither player nor reward: it is compared once with each of the options.
    """
    game = load_game(name)
    varied = game.configure(VARIANTS[name])
    rewards, players = list(game.rewards), ["random", *game.policies]
    done = []
    for k in range(max(len(rewards), len(players))):
        both = Both(varied if k else game, games, rewards[k % len(rewards)], players[k % len(players)])
        done.append(f"{both.name}: {both.play(look=k < 2)} rounds of {games} games")
    illegal_action_is_reported(varied)
    old_driver_is_named(varied)
    return done


def illegal_action_is_reported(game: Game) -> None:
    """By `check`, in the words of `Game.check`, and no game is played on then."""
    games = DeviceGames(game, 3)
    games.deal(on_device(stream(5, "illegal", 0, 3)))
    masks, before = on_device(np.zeros(3, np.uint64)), on_host(games.states)
    games.legal(masks)
    actions = np.array([lowest(mask) for mask in on_host(masks)], np.uint8)
    actions[1] = game.actions
    games.apply(masks, on_device(actions))
    try:
        games.check()
    except ValueError as error:
        assert f"action {game.actions}: seat {before['turn'][1]} " in str(error), error
    else:
        raise AssertionError("an illegal action went unnoticed")
    assert same(on_host(games.states), before), "games went on after an illegal action"


class OldDriver(DeviceGames):
    """What a driver says of code that is too new for it, when that is first launched."""

    def turn(self, out: Any) -> None:
        raise RuntimeError("Linker error\n[CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION]")


def old_driver_is_named(game: Game) -> None:
    """In one line, with the way out."""
    try:
        OldDriver(game, 1)
    except NoDeviceError as error:
        assert "UNSUPPORTED_PTX_VERSION" in str(error) and "a newer driver" in str(error) and "\n" not in str(error)
    else:
        raise AssertionError("a driver that runs nothing went unnoticed")


if __name__ == "__main__":
    print(*compare(sys.argv[1], int(sys.argv[2])), sep="\n")
