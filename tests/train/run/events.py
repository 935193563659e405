"""Event files as TensorBoard reads them."""

from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

EVERYTHING = {"histograms": 0, "tensors": 0, "scalars": 0, "compressedHistograms": 0}


def read(run: Path) -> EventAccumulator:
    """Read all event files of a run."""
    return EventAccumulator(str(run / "tensorboard"), size_guidance=EVERYTHING).Reload()


def shown(run: Path) -> dict[str, list[tuple[int, Any]]]:
    """Return the steps of every curve and histogram, with values where these do not depend on time."""
    found = read(run)
    tags = found.Tags()
    scalars = {tag: [(each.step, str(each.value)) for each in found.Scalars(tag)] for tag in tags["scalars"]}
    histograms = {
        tag: [(each.step, each.histogram_value) for each in found.Histograms(tag)] for tag in tags["histograms"]
    }
    of_clock = (tag for tag in scalars if tag.startswith("time") or tag.endswith("seconds"))
    timed = {tag: [(step, None) for step, _ in scalars[tag]] for tag in of_clock}
    return scalars | timed | histograms


def curves(run: Path) -> dict[str, list[int]]:
    """Return the decisions at which each curve has a point."""
    found = read(run)
    return {tag: [event.step for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
