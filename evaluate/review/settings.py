"""Settings of a review."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from busso.base.bounds import Bounds
from busso.command.settings.checks import MAX_DEALS, MAX_FLOAT, SettingsError, check_numbers, check_one_of, require

AUTO = "auto"  # of `by`
TEXT, HTML = "text", "html"
ALL, MISTAKES, SUMMARY = "all", "mistakes", "summary"


@dataclass
class ReviewSettings:
    """Settings of `busso review`; documented in conf/review.yaml."""

    file: str
    by: str
    format: str
    show: str
    to: str | None
    seats: Any
    hands: Annotated[int | None, Bounds(1, MAX_DEALS, words=(None,))]
    grades: Annotated[list[float] | None, Bounds(0.0, MAX_FLOAT, words=(None,))]
    device: str

    def __post_init__(self) -> None:
        check_numbers("", self)
        if not self.file:
            raise SettingsError("file", "name the file of records, as in busso review games.jsonl")
        check_one_of("format", self.format, TEXT, HTML)
        check_one_of("show", self.show, ALL, MISTAKES, SUMMARY)
        if self.grades is not None:
            require(len(self.grades) == 3, "grades", "three increasing costs, as [0.1,0.34,1]", self.grades)
        seats = self.seats if isinstance(self.seats, list) else [] if self.seats is None else [self.seats]
        for seat in seats:
            good = isinstance(seat, int) and not isinstance(seat, bool) and 0 <= seat <= 7
            require(good, "seats", "numbers of seats, from 0, as 0 or [0,2]", self.seats)
        self.seats = seats or None

    @property
    def target(self) -> Path | None:
        """Output file; None for standard output."""
        if self.to is None:
            return Path(self.file).with_suffix(".html") if self.format == HTML else None
        return Path(self.to)
