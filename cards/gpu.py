"""Games on a CUDA device: kernels around the same rules as the loops of `cards.compiled.batch`, one thread a game.

Import this module only where a device is to play: `from numba import cuda` takes a second. It needs the extra `gpu`
(`pip install 'busso[gpu]'`), and an NVIDIA GPU to launch anything; Numba's simulator (NUMBA_ENABLE_CUDASIM=1, read when
Numba is imported) runs the same kernels on a CPU, slowly, and there arrays "on the device" are NumPy arrays.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda, from_dtype
from numpy.typing import NDArray

from cards.compiled.batch import Rules, allows, next_bits, random_legal
from cards.compiled.jit import njit
from cards.game import Game, States

SIMULATED = bool(config.ENABLE_CUDASIM)
# Of a block: few, so that each has many registers, and a multiple of the 32 that run together.
THREADS = 4 if SIMULATED else 128
_NOTHING_ILLEGAL = np.iinfo(np.int64).max
_OVER = np.uint64(0)  # the mask of a game that is over, in which no seat moves
_ACTIONS = 256  # what an action may be as a byte

# Numba says so at every launch of a small grid; the last games of a run are few.
warnings.filterwarnings("ignore", "Grid size .* will likely result in GPU under-utilization")


class NoDeviceError(RuntimeError):
    """There is no CUDA device that could play; the message says why, and what to do about it."""


def require_device() -> None:
    """Raise NoDeviceError, in one line, unless kernels can be launched here."""
    if SIMULATED:
        return
    if importlib.util.find_spec("numba_cuda") is None:
        raise NoDeviceError("games on the GPU need numba-cuda, which is not installed: pip install 'busso[gpu]'")
    if not cuda.is_available():
        raise NoDeviceError("games on the GPU need an NVIDIA GPU and its driver, and CUDA finds none here")


def shared(array: Any) -> Any:
    """The same memory for kernels: of a torch tensor, say, by `__cuda_array_interface__`. int64 is seen as uint64."""
    found = np.asarray(array) if SIMULATED else cuda.as_cuda_array(array)
    return found.view(np.uint64) if found.dtype == np.int64 else found


def _unwrap(wrapped: Any) -> Any:
    while hasattr(wrapped, "_item") or hasattr(wrapped, "_ary"):
        wrapped = wrapped.__dict__.get("_item", wrapped.__dict__.get("_ary"))
    return wrapped


# The simulator wraps what a kernel is given, and compiled functions do not take that; on a GPU there is nothing to do.
plain = _unwrap if SIMULATED else njit(lambda value: value)


class Kernels(NamedTuple):
    """Kernels over all `states`, for a grid of as many threads; everywhere a row for each game."""

    deal: Any  # (states, blank, seeds)
    turn: Any  # (states, out)
    legal: Any  # (states, out)
    observe: Any  # (states, out): what the seat to move sees
    apply: Any  # (states, masks, actions, illegal)
    returns: Any  # (states, out)


@njit
def _turn(state: Any) -> int:
    return state.turn


# The kernels name `cuda` as a global of this module: the simulator puts its own in that place.
@cache
def kernels(rules: Rules) -> Kernels:  # noqa: C901 - kernels side by side
    """The kernels of a game; each is compiled at its first launch."""
    deal_one, legal_one, apply_one, observe_one, _, returns_one = rules

    def look(one: Callable[..., Any]) -> Any:
        """A kernel that writes one number for each game."""

        @cuda.jit
        def kernel(states: Any, out: Any) -> None:
            i = cuda.grid(1)
            if i < states.size:
                out[i] = one(plain(states[i]))

        return kernel

    @cuda.jit
    def deal(states: Any, blank: Any, seeds: Any) -> None:
        i = cuda.grid(1)
        if i < states.size:
            states[i] = plain(blank[0])
            deal_one(plain(states[i]), seeds[i])

    @cuda.jit
    def observe(states: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < states.size:
            for word in range(out.shape[1]):
                out[i, word] = np.uint64(0)
            observe_one(plain(states[i]), states[i].turn, plain(out[i]))

    @cuda.jit
    def apply(states: Any, masks: Any, actions: Any, illegal: Any) -> None:
        i = cuda.grid(1)
        if i < states.size and masks[i] != _OVER and illegal[0] == _NOTHING_ILLEGAL:
            apply_one(plain(states[i]), actions[i])

    @cuda.jit
    def returns(states: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < states.size:
            returns_one(plain(states[i]), plain(out[i]))

    return Kernels(deal, look(_turn), look(legal_one), observe, apply, returns)


@cache
def check_kernel() -> Any:
    """`(masks, actions, illegal)`: note the first game that is not over and whose action is not legal."""

    @cuda.jit
    def check(masks: Any, actions: Any, illegal: Any) -> None:
        i = cuda.grid(1)
        if i < masks.size and masks[i] != _OVER and not allows(masks[i], actions[i]):
            cuda.atomic.min(illegal, 0, i * _ACTIONS + np.int64(actions[i]))

    return check


@cache
def reward_kernel(apply_one: Callable[..., None], reward_one: Callable[..., None], dtype: np.dtype[np.void]) -> Any:
    """Like `Kernels.apply`, and adds what every seat earns by the action to `totals`, the last argument."""
    state_type = from_dtype(dtype)

    @cuda.jit
    def apply_rewarded(states: Any, masks: Any, actions: Any, illegal: Any, totals: Any) -> None:
        i = cuda.grid(1)
        before = cuda.local.array(1, state_type)
        if i < states.size and masks[i] != _OVER and illegal[0] == _NOTHING_ILLEGAL:
            before[0] = plain(states[i])
            apply_one(plain(states[i]), actions[i])
            reward_one(plain(before[0]), actions[i], plain(states[i]), plain(totals[i]))

    return apply_rewarded


@njit  # as a whole: in the simulator a word would come back as a Python integer
def _random_action(masks: Any, generators: Any, game: int) -> int:
    return random_legal(masks[game], next_bits(generators, game))


@cache
def random_kernel() -> Any:
    """`(masks, generators, out)`: the draws of `cards.play.RandomPlayer`, in the games that are not over."""

    @cuda.jit
    def draw(masks: Any, generators: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < masks.size and masks[i] != _OVER:
            out[i] = _random_action(plain(masks), plain(generators), i)

    return draw


@cache
def policy_kernel(policy: Callable[..., int]) -> Any:
    """`(states, masks, generators, out)`: what the policy plays in the games that are not over; see `policy_loop`."""

    @njit
    def decide(states: Any, generators: Any, game: int) -> int:
        return policy(states[game], next_bits(generators, game))

    @cuda.jit
    def act(states: Any, masks: Any, generators: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < states.size and masks[i] != _OVER:
            out[i] = decide(plain(states), plain(generators), i)

    return act


class DeviceGames:
    """`count` games whose states stay on the device, with the functions of `Game` over all of them.

    What they write goes into arrays that are there already, of any library (see `shared`), so that a round can be
    captured in a CUDA graph; nothing is copied or waited for. Games that are over (mask 0) stay as they are. `stream`
    is the CUDA stream of all launches, 0 for the default one. Raises NoDeviceError where no GPU can run them.
    """

    def __init__(self, game: Game, count: int, reward: Callable[..., None] | None = None, device: int = 0) -> None:
        require_device()
        self._select(device)
        self.game = game
        self.stream: Any = 0
        self._count = count
        self._kernels = kernels(game.rules)
        self._apply = reward_kernel(game.rules.apply, reward, game.dtype) if reward else self._kernels.apply
        self._blank = on_device(np.full(1, game.blank, game.dtype))
        self._illegal = on_device(np.full(1, _NOTHING_ILLEGAL))
        self.states = on_device(np.full(count, game.blank, game.dtype))
        self._first_launch()

    def use_stream(self, handle: int) -> None:
        """Launch on the CUDA stream with this address from now on (torch: `Stream.cuda_stream`)."""
        self.stream = cuda.external_stream(handle) if handle and not SIMULATED else 0

    def deal(self, seeds: Any) -> None:
        """A new game for each of the seeds; there is one for every game."""
        self._launch(self._kernels.deal, self.states, self._blank, shared(seeds))

    def turn(self, out: Any) -> None:
        """The seats to move, uint8."""
        self._launch(self._kernels.turn, self.states, shared(out))

    def legal(self, out: Any) -> None:
        """Bit masks of the seats to move, 0 where a game is over."""
        self._launch(self._kernels.legal, self.states, shared(out))

    def observe(self, out: Any) -> None:
        """Packed observations `[games, words]` of the seats to move."""
        self._launch(self._kernels.observe, self.states, shared(out))

    def returns(self, out: Any) -> None:
        """Results `[games, seats]`, float32, of games that have all ended; `out` comes zeroed."""
        self._launch(self._kernels.returns, self.states, shared(out))

    def apply(self, masks: Any, actions: Any, totals: Any = None) -> None:
        """Play one action in each game, `masks` being the legal ones; with a reward, add to `totals` what seats earn.

        After an illegal action no state changes any more; `check` says so when it is asked.
        """
        masks, actions = shared(masks), shared(actions)
        self._launch(check_kernel(), masks, actions, self._illegal)
        more = () if totals is None else (shared(totals),)
        self._launch(self._apply, self.states, masks, actions, self._illegal, *more)

    def check(self) -> None:
        """Wait for the device. Raises ValueError, as `Game.check` does, if an action was not legal."""
        found = int(on_host(self._illegal)[0])
        if found != _NOTHING_ILLEGAL:
            row, action = divmod(found, _ACTIONS)
            state: States = on_host(self.states[row : row + 1])
            self.game.check(state, np.zeros(1, np.int64), np.array([action], np.uint8))

    def random(self, masks: Any, generators: Any, out: Any) -> None:
        """A random legal action in each game, by the generators, which move on."""
        self._launch(random_kernel(), shared(masks), shared(generators), shared(out))

    def policy(self, policy: Callable[..., int], masks: Any, generators: Any, out: Any) -> None:
        """What a scalar policy plays in each game."""
        self._launch(policy_kernel(policy), self.states, shared(masks), shared(generators), shared(out))

    def _launch(self, kernel: Any, *arguments: Any) -> None:
        kernel[-(-self._count // THREADS), THREADS, self.stream](*arguments)

    def _select(self, device: int) -> None:
        if SIMULATED:
            return
        try:
            cuda.select_device(device)
        except Exception as error:
            reason = str(error).strip().rpartition("\n")[2]
            raise NoDeviceError(f"numba-cuda cannot use cuda:{device} ({reason}); say device=cpu") from error

    def _first_launch(self) -> None:
        """Find out now whether the driver takes what is compiled here."""
        try:
            self.turn(on_device(np.zeros(self._count, np.uint8)))
        except Exception as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise NoDeviceError(
                f"this GPU's driver does not run what numba-cuda compiles ({reason[-1].strip()}); a newer driver, or "
                "`pip install 'numba-cuda[cu12]'` in place of cu13 for a driver of CUDA 12, would"
            ) from error


def on_device(array: NDArray[Any]) -> Any:
    """A copy of an array for kernels."""
    return array.copy() if SIMULATED else cuda.to_device(array)


def on_host(array: Any) -> NDArray[Any]:
    """A copy of what a kernel wrote, when it has done so."""
    found: NDArray[Any] = array.copy() if SIMULATED else array.copy_to_host()
    return found
