"""What the model foretells of a cluster, against real Ray with workers that play nothing."""

import pytest

from tests.bench.scaling import copy_speeds, fit, foretold, watch_all
from tests.bench.stub_cluster import stub_cluster

SECONDS = 5.0


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.timeout(400)
def test_what_more_workers_do_is_foretold() -> None:
    """Constants fitted to two and six stub workers say what twelve do, with rollouts of another size.

    Bounds: rollouts a second to 25%, the driver's share of a core to a factor of two; others may want the CPUs too.
    """
    seen, calls = watch_all((2, 6), (512, 32), SECONDS)
    costs = fit(seen, calls, *copy_speeds(rounds=5))
    with stub_cluster(12) as stubs:
        found = stubs.watch(SECONDS, 128)
        rate, driver = foretold(stubs, found, 128, costs)
    assert rate / found.messages == pytest.approx(1, abs=0.25), (rate, found, costs)
    assert 0.5 < driver / found.driver < 2, (driver, found, costs)
    assert found.messages > 12 * 4 * 0.5  # four rollouts a second each, if nothing keeps them from it
