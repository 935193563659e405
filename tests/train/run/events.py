"""Event files as TensorBoard reads them."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

EVERYTHING = {"histograms": 0, "images": 0, "tensors": 0, "scalars": 0, "compressedHistograms": 0}


def read(run: Path) -> EventAccumulator:
    """All that the files of a run say."""
    return EventAccumulator(str(run / "tensorboard"), size_guidance=EVERYTHING).Reload()


def curves(run: Path) -> dict[str, list[int]]:
    """The decisions at which each curve has a point."""
    found = read(run)
    return {tag: [event.step for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
