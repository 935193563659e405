"""Setting groups of a DQN run, each checked by itself: network, replay buffer, exploration and opponents."""

from dataclasses import dataclass, field

from busso.cards.base import own_files
from busso.cards.base.bounds import bounded
from busso.cards.game import Game
from busso.command.settings.checks import MAX_COUNT, SettingsError, check_numbers, check_one_of, require
from busso.command.settings.quoting import spelled

NETWORK = "network"  # the learning network in `opponents.phases.mix`
SEAT, SIDE = "seat", "side"  # what one draw of `opponents.phases.mix` fills
MAX_BITS = 2**20  # maximum observation bits that a network sees
MAX_LAYERS = 100


def spelled_code(key: str, text: str) -> str:
    """Return the canonical name of a class or function in a Python file. Raises SettingsError."""
    if own_files.parted(text) is None:
        raise SettingsError(key, f"expected a Python file, as in ./net.py:NAME, not {text}")
    return spelled(key, text)


@dataclass
class NetworkSettings:
    """Shape of the Q-network. By default it sees all observation bits.

    With `module`, an nn.Module in a Python file of the user's own, the shape of busso's networks is cleared.
    """

    hidden: list[int] = bounded([256, 256, 256], 1, 65_536)
    symmetric: bool = False
    inputs: int | None = bounded(None, 1, MAX_BITS)
    dueling: bool = False
    module: str | None = None
    init_from: str | None = None

    def __post_init__(self) -> None:
        check_numbers("network", self)
        if self.module is not None:
            self.module = spelled_code("network.module", self.module)
            self.hidden, self.symmetric, self.dueling = [], False, False
            return
        require(0 < len(self.hidden) <= MAX_LAYERS, "network.hidden", f"1 to {MAX_LAYERS} widths", self.hidden)

    def check(self, game: Game) -> None:
        """Raise SettingsError if the game lacks the bits or the symmetric parts."""
        inputs = self.inputs or game.bits
        require(inputs <= game.bits, "network.inputs", f"at most {game.bits}, the bits of {game.name}", inputs)
        if not self.symmetric:
            return
        if game.symmetry is None:
            raise SettingsError("network.symmetric", f"{game.name} has no symmetric parts", "use false")
        try:
            game.symmetry.first(inputs)
        except ValueError as error:
            raise SettingsError("network.inputs", error, "use null, or network.symmetric=false") from None


@dataclass
class ReplaySettings:
    """Settings of the replay buffer."""

    capacity: int = bounded(1_000_000, 1, 10**12)

    def __post_init__(self) -> None:
        check_numbers("replay", self)


@dataclass
class ExplorationSettings:
    """Epsilon, decreasing linearly from `start` to `end` over the first `fraction` of the run's budget."""

    start: float = bounded(1.0, 0.0, 1.0)
    end: float = bounded(0.05, 0.0, 1.0)
    fraction: float = bounded(0.03, 0.0, 1.0)

    def __post_init__(self) -> None:
        check_numbers("exploration", self)


@dataclass
class PhaseSettings:
    """Probabilities of the players in training until the episode `until` (`null`: to the end).

    With `each: seat` each seat is drawn separately. With `each: side` the network plays one side of each game (a team,
    or a seat of Spike), and one player is drawn for all other seats.
    """

    until: int | None = bounded(None, 1, MAX_COUNT)
    mix: dict[str, float] = bounded({}, 0.0, 1.0)
    each: str = SEAT

    def __post_init__(self) -> None:
        check_numbers("opponents.phases", self)
        check_one_of("opponents.phases.each", self.each, SEAT, SIDE)
        shares = {spelled("opponents.phases.mix", player): share for player, share in self.mix.items()}
        require(len(shares) == len(self.mix), "opponents.phases.mix", "each player once", list(self.mix))
        self.mix = shares


@dataclass
class OpponentSettings:
    """Players in training games: by `phases`, or `only` one player against which one side learns."""

    only: str | None = None
    phases: list[PhaseSettings] = field(default_factory=lambda: [PhaseSettings(mix={NETWORK: 1.0})])

    def __post_init__(self) -> None:
        self.only = None if self.only is None else spelled("opponents.only", self.only)
