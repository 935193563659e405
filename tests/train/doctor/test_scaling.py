"""Report of `busso doctor` on more CPUs, worked by hand."""

import pytest

from busso.train.doctor.measure import LEARNER, WORKERS, Scaled, Scaling

# A worker plays 1,000 decisions/s; the learner makes 10 updates/s of 2,048 decisions each: 20,480 decisions/s.
PLAIN = Scaling(worker=1_000.0, updates=10.0, decisions=2_048.0)


@pytest.mark.parametrize(
    ("scaling", "cpus", "decisions", "updates", "limit"),
    [
        (PLAIN, 8, 7_000.0, 7_000 / 2_048, WORKERS),
        (PLAIN, 16, 15_000.0, 15_000 / 2_048, WORKERS),
        (PLAIN, 64, 20_480.0, 10.0, LEARNER),
        (PLAIN, 1, 1_000.0, 1_000 / 2_048, WORKERS),  # one CPU shared by learner and worker
        (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 16, 14_000.0, 14_000 / 2_048, WORKERS),
        (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 64, 34_816.0, 17.0, LEARNER),
        # A floor of a quarter: up to 8,192 decisions per update.
        (Scaling(1_000.0, 1.0, 2_048.0, floor=0.25), 8, 7_000.0, 1.0, WORKERS),
        (Scaling(1_000.0, 1.0, 2_048.0, floor=0.25), 16, 8_192.0, 1.0, LEARNER),
    ],
)
def test_the_slower_stage_limits(scaling: Scaling, cpus: int, decisions: float, updates: float, limit: str) -> None:
    assert scaling.on(cpus) == Scaled(cpus, pytest.approx(decisions), pytest.approx(updates), limit)


@pytest.mark.parametrize(
    ("scaling", "cpus"),
    [(PLAIN, 22), (Scaling(1_000.0, 17.0, 2_048.0, threads=2), 37), (Scaling(1e6, 10.0, 2_048.0), 2)],
)
def test_how_many_cpus_are_enough(scaling: Scaling, cpus: int) -> None:
    """21 workers play the 20,480 decisions; fewer do not."""
    assert scaling.enough() == cpus
    assert scaling.on(cpus).limit == LEARNER
    assert cpus == 2 or scaling.on(cpus - 1).limit == WORKERS
