"""The model of a run's throughput: worked by hand, and what must hold whatever the figures."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.doctor.throughput_model import Load, RayCosts, Speeds, Stage, flops, in_turn, predict, saturate, stages_of
from train.dqn.network.q_network import QNetwork
from train.settings.dqn import RolloutSettings

LOAD = Load(
    workers=4,
    nodes=1,
    cpus=8,
    decisions=10_000,
    bytes=100.0,
    batch_size=1000,
    samples_per_insert=0.5,
    publish_seconds=0.5,
    weight_bytes=1e6,
)
SPEEDS = Speeds(playing=1e-5, inserting=1e-7, update=1e-3)
COSTS = RayCosts(call=1e-2, hear=1e-3, publish=1e-2, message=4e-3, driver_byte=1e-9, beat=1e-3, store=1e8, transfer=1e9)


def stages(load: Load = LOAD, network: float = 1e9) -> dict[str, Stage]:
    return {stage.name: stage for stage in stages_of("ray", load, SPEEDS, COSTS, network)}


def test_stages_worked_by_hand() -> None:
    """A worker: 10 µs, a ten-thousandth of 10 ms and 1 µs of copying 100 bytes at 100 MB/s: 12 µs; four of them 3 µs.

    The learner: 0.1 µs to insert, 0.5/1000 of an update of 1 ms, 0.1 µs to hear: 0.7 µs, and 2% for publishing twice
    10 ms a second. The driver: 0.4 µs of a message and 0.1 µs for its bytes, and 0.4% for four workers' heartbeats.
    """
    found = stages()
    assert found["workers"].seconds == pytest.approx(3e-6)
    assert found["learner"].seconds == pytest.approx(0.7e-6) and found["learner"].fixed == pytest.approx(0.02)
    assert found["driver"].seconds == pytest.approx(0.5e-6) and found["driver"].fixed == pytest.approx(0.004)
    # Four workers copy side by side; nothing goes over the network.
    assert found["object store"].seconds == pytest.approx(0.25e-6)
    assert found["network"].seconds == found["network"].fixed == 0
    # Eight CPUs for 12 µs of playing, 0.7 of learning and 0.5 of the driver.
    assert found["CPUs"].seconds == pytest.approx(13.2e-6 / 8)
    whole = predict("ray", LOAD, SPEEDS, COSTS)
    assert whole.decisions == pytest.approx(1e6 / 3) and whole.limit.name == "workers"
    assert whole.busy["workers"] == pytest.approx(1) and whole.busy["learner"] == pytest.approx(0.7 / 3 + 0.02)
    assert "rollout.workers" in whole.limit.change


def test_two_nodes_worked_by_hand() -> None:
    """Of four workers two are away: half of 100 bytes a decision over the link, and 1 MB of weights twice a second."""
    found = stages(replace(LOAD, nodes=2))
    assert found["network"].seconds == pytest.approx(50e-9) and found["network"].fixed == pytest.approx(2e-3)
    # Half from here, by two workers at 100 MB/s each, half from there at 1 GB/s.
    assert found["object store"].seconds == pytest.approx(0.5 * 0.5e-6 + 0.5 * 0.1e-6)
    assert found["CPUs"].seconds == pytest.approx((12e-6 / 2 + 0.7e-6 + 0.5e-6) / 8)


def test_heartbeats_take_no_more_than_those_of_a_hundred_workers() -> None:
    """A hundred are heard twice a second each, for a tenth of the driver's core; more of them less often."""
    shares = [stages(replace(LOAD, workers=count, nodes=20))["driver"].fixed for count in (50, 100, 1000)]
    assert shares == pytest.approx([0.05, 0.1, 0.1])
    rollout = RolloutSettings(kind="ray")
    assert [rollout.look_seconds(count) for count in (4, 100, 1000)] == [0.5, 0.5, 5.0]
    assert rollout.look_seconds(100_000) == 15.0  # a quarter of the time after which a silent worker is replaced
    assert RolloutSettings(kind="ray", publish_ms=0.0).look_seconds(4) == 0.1


@pytest.mark.parametrize(
    ("changes", "costs", "network", "limit", "key"),
    [
        ({}, {}, 1e9, "workers", "rollout.workers"),
        ({"workers": 100, "nodes": 20, "samples_per_insert": 8.0}, {}, 1e9, "learner", "samples_per_insert"),
        ({"workers": 100, "nodes": 20, "decisions": 100}, {}, 1e9, "driver", "rollout.games"),
        ({"workers": 100, "nodes": 20}, {"transfer": 1e7}, 1e9, "object store", "rollout=threads"),
        ({"workers": 100, "nodes": 20}, {}, 1e7, "network", "a faster link"),
        ({"workers": 8}, {}, 1e9, "CPUs", "more nodes"),
    ],
)
def test_the_stage_that_saturates_is_named(
    changes: dict[str, float], costs: dict[str, float], network: float, limit: str, key: str
) -> None:
    load, ray = replace(LOAD, **changes), replace(COSTS, **costs)  # type: ignore[arg-type]
    found = predict("ray", load, SPEEDS, ray, network)
    assert found.limit.name == limit and key in found.limit.change


def test_one_process_takes_turns() -> None:
    """10 µs to play, 0.1 to insert, 0.5 of an update: 10.6 µs a decision, of which playing is the most."""
    found = predict("local", LOAD, SPEEDS)
    assert found.decisions == pytest.approx(1 / 10.6e-6) and found.limit.name == "rollout"
    assert sum(found.busy.values()) == pytest.approx(1) and found.busy["learner"] == pytest.approx(0.5 / 10.6)
    slow = predict("local", replace(LOAD, samples_per_insert=128.0), SPEEDS)
    assert slow.limit.name == "learner" and "learner.batch_size" in slow.limit.change


def test_games_on_threads() -> None:
    """Eight threads at 0.8 µs: 0.1 µs a decision; 92 + 8 bytes at 1 GB/s the same; the device 0.05 + 0.1 + 0.5 µs."""
    speeds = replace(SPEEDS, games=0.8e-6, forward=0.05e-6, upload=1e9)
    load = replace(LOAD, threads=8, bytes=92.0)
    found = predict("threads", load, speeds)
    assert found.limit.name == "device" and found.decisions == pytest.approx(1 / 0.65e-6)
    assert "learner takes most of it" in found.limit.change
    assert found.busy["games"] == pytest.approx(0.1 / 0.65) == pytest.approx(found.busy["upload"])
    assert predict("threads", replace(load, threads=1), speeds).limit.name == "games"
    assert predict("threads", load, replace(speeds, upload=1e8)).limit.name == "upload"


def test_games_on_threads_of_a_cpu() -> None:
    """Two threads of 10 µs: 5 µs; the learner 0.6 µs beside them; together 10.6 µs of two cores: 5.3 µs."""
    found = predict("threads", replace(LOAD, threads=2, cpus=2), SPEEDS)
    assert found.limit.name == "CPUs" and found.decisions == pytest.approx(1 / 5.3e-6)
    assert found.busy["games"] == pytest.approx(5 / 5.3) and found.busy["learner"] == pytest.approx(0.6 / 5.3)
    few = predict("threads", replace(LOAD, threads=2, cpus=8), SPEEDS)
    assert few.limit.name == "games" and "rollout.actor_threads" in few.limit.change
    often = predict("threads", replace(LOAD, threads=2, samples_per_insert=128.0), SPEEDS)
    assert often.limit.name == "learner" and "learner.samples_per_insert" in often.limit.change


def test_threads_beyond_the_cpus_play_no_more() -> None:
    speeds = replace(SPEEDS, update=1e-9, inserting=1e-9, games=1e-5, forward=1e-9, upload=1e12)
    for each in (speeds, replace(speeds, upload=0.0)):
        full, beyond = (predict("threads", replace(LOAD, cpus=4, threads=count), each) for count in (4, 64))
        assert beyond.decisions == full.decisions <= 4e5 * (1 + 1e-9)


def test_games_on_the_gpu_take_turns_with_the_rest() -> None:
    found = predict("device", LOAD, replace(SPEEDS, games=1e-9, forward=2e-9))
    assert found.decisions == pytest.approx(1 / 603e-9) and found.limit.name == "learner"


def test_operations_of_a_forward_pass() -> None:
    """Two for each weight: 2 * (10 * 20 + 20 * 30 + 30 * 5)."""
    assert flops(QNetwork(10, 5, [20, 30], False)) == 1900


positive = st.floats(1e-9, 1e-2)
rates = st.floats(1e6, 1e11)
LOADS = st.builds(
    Load,
    workers=st.integers(1, 2000),
    nodes=st.integers(1, 100),
    cpus=st.integers(1, 256),
    decisions=st.integers(1, 10**6),
    bytes=st.floats(1, 2000),
    batch_size=st.integers(1, 10**5),
    samples_per_insert=st.floats(0.01, 256),
    publish_seconds=st.floats(0.01, 60),
    weight_bytes=st.floats(1e3, 1e8),
)
SPEED = st.builds(
    Speeds, playing=positive, inserting=positive, update=positive, games=positive, forward=positive, upload=rates
)
RAY = st.builds(
    RayCosts,
    call=positive,
    hear=positive,
    publish=st.floats(1e-6, 5e-3),
    message=positive,
    driver_byte=st.floats(0, 1e-8),
    beat=st.floats(0, 1e-4),
    store=rates,
    transfer=rates,
)
KINDS = st.sampled_from(["local", "ray", "threads", "device"])


@given(KINDS, LOADS, SPEED, RAY, rates)
def test_no_stage_is_busier_than_the_one_that_limits(
    kind: str, load: Load, speeds: Speeds, ray: RayCosts, network: float
) -> None:
    found = predict(kind, load, speeds, ray, network)
    assert found.decisions >= 0 and all(0 <= busy <= 1 + 1e-9 for busy in found.busy.values())
    assert found.busy[found.limit.name] == max(found.busy.values())
    if kind in ("ray", "threads"):
        assert found.busy[found.limit.name] == pytest.approx(1)


@given(LOADS, SPEED, RAY, rates)
def test_a_worker_more_never_plays_less_until_another_stage_is_full(
    load: Load, speeds: Speeds, ray: RayCosts, network: float
) -> None:
    """Each worker on a node of its own, the first beside the learner."""
    load = replace(load, nodes=load.workers, cpus=load.cpus)
    more = replace(load, workers=load.workers + 1, nodes=load.workers + 1)
    before, after = (predict("ray", each, speeds, ray, network) for each in (load, more))
    if after.limit.name == "workers":
        assert after.decisions > before.decisions


@given(LOADS, SPEED, RAY, rates, st.integers(2, 8))
def test_larger_batches_and_rollouts_never_cost_anything(
    load: Load, speeds: Speeds, ray: RayCosts, network: float, times: int
) -> None:
    larger = replace(load, batch_size=load.batch_size * times, decisions=load.decisions * times)
    before, after = (predict("ray", each, speeds, ray, network) for each in (load, larger))
    assert after.decisions >= before.decisions * (1 - 1e-9)


def test_what_is_said_to_help_does() -> None:
    """A larger batch where the learner limits the run, larger rollouts where the driver does."""
    many = replace(LOAD, workers=100, nodes=20)
    learning, hearing = replace(many, samples_per_insert=8.0), replace(many, decisions=100)
    for before, after in (
        (learning, replace(learning, batch_size=4000)),
        (hearing, replace(hearing, decisions=400)),
    ):
        first, then = (predict("ray", load, SPEEDS, COSTS).decisions for load in (before, after))
        assert then > 2 * first


def test_a_stage_with_nothing_left_gives_nothing() -> None:
    """A driver that hears from more workers than it can, even if none of them played."""
    full = Stage("driver", 1e-6, 1.5, "")
    assert full.capacity == 0 and saturate([full, Stage("network", 0.0, 0.0, "")]).decisions == 0
    assert Stage("network", 0.0, 0.0, "").capacity == float("inf")
    assert in_turn([Stage("a", 1e-6, 0.5, ""), Stage("b", 1e-6, 0, "")]).decisions == pytest.approx(250_000)
