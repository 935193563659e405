"""Several runs side by side: those that differ in their seed alone are one kind, with an interval over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from cards.matches.duplicate import Estimate
from command.settings.checks import SettingsError
from evaluate.report.aggregate import Scores, probability_of_improvement, with_interval
from evaluate.report.content import Block, Figure, Report, Section, Table, Text
from evaluate.report.drawing import COLOURS, Line, Panel, draw_panels, new_figure, style, to_svg
from evaluate.report.runs import SPEED, Run, as_text, same_but_for_the_seed, shapes_learning
from evaluate.report.sections.training import in_words, results_section
from evaluate.report.seeds import BAND, Axis, band, by_decisions, by_minutes
from train.run.metrics.scalars import evaluation_scalar
from train.settings.saved import changes

_MOST_PANELS = 4
_LEARNING = (("train/loss", "loss"), ("error/mean", "mean error"), ("error/greatest", "greatest error"))


@dataclass(frozen=True)
class Kind:
    """Runs that differ in their seed alone, by the name of the first."""

    name: str
    runs: Sequence[Run]

    @property
    def label(self) -> str:
        """Its name, and of how many runs it is if there are several."""
        return self.name if len(self.runs) == 1 else f"{self.name}, {len(self.runs)} seeds"


def kinds_of(runs: Sequence[Run]) -> list[Kind]:
    """The runs by kind, in the order in which they were given. Raises SettingsError for runs of several games.

    Two with the same settings and the same seed are two kinds: they differ in something that no setting says.
    """
    games = {run.settings.game_name: run for run in runs}
    if len(games) > 1:
        (first, one), (second, other), *_ = games.items()
        raise SettingsError("run", f"{one.folder} plays {first}, {other.folder} {second}", "compare runs of one game")
    found: list[list[Run]] = []
    for run in runs:
        alike = next((kind for kind in found if _is_another_seed_of(kind, run)), None)
        if alike is None:
            found.append([run])
        else:
            alike.append(run)
    names = _told_apart([kind[0] for kind in found])
    return [Kind(name, kind) for name, kind in zip(names, found, strict=True)]


def _is_another_seed_of(kind: Sequence[Run], run: Run) -> bool:
    seeds = [other.settings.seed for other in kind]
    return run.settings.seed not in seeds and same_but_for_the_seed(kind[0], run)


def _told_apart(runs: Sequence[Run]) -> list[str]:
    """Their names, with as many folders above as it takes where two have the same."""
    parts = [run.folder.resolve().parts for run in runs]
    return [_shortest(own, [other for other in parts if other is not own]) for own in parts]


def _shortest(own: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    for length in (1, *range(3, len(own))):
        if all(other[-length:] != own[-length:] for other in others):
            return "/".join(own[-length:])
    return str(Path(*own))


def comparison_of(runs: Sequence[Run], samples: int, seed: int) -> Report:
    """The whole page."""
    kinds = kinds_of(runs)
    game = runs[0].settings.game_name
    sections = [
        _together(kinds, samples, seed),
        results_section(runs),
        *_curves(kinds),
        _settings(kinds),
        _spent(kinds),
    ]
    lead = f"{len(runs)} runs of {game}"
    lead += "." if len(kinds) == len(runs) else f", {len(kinds)} kinds: those that differ in their seed alone are one."
    named = ", ".join(kind.name for kind in kinds[:4]) + (f" and {len(kinds) - 4} more" if len(kinds) > 4 else "")
    return Report(f"{game}: {named}", lead, {}, [section for section in sections if section is not None])


# ---------------------------------------------------------------------- results


def scores_of(kind: Kind, opponents: Sequence[str]) -> Scores | None:
    """Shares of games won at the end, `[runs, opponents]`; None where no run of the kind has them."""
    met = [run.against("win_rate") for run in kind.runs]
    rows = [[found[name].mean for name in opponents] for found in met if found]
    return np.array(rows) if rows else None


def common_opponents(kinds: Sequence[Kind]) -> list[str]:
    """Whom every finished run has met at its end."""
    met = [list(run.against("win_rate")) for kind in kinds for run in kind.runs if run.against("win_rate")]
    return [name for name in met[0] if all(name in others for others in met)] if met else []


def _together(kinds: Sequence[Kind], samples: int, seed: int) -> Section | None:
    """Each kind as one number: the interquartile mean over seeds and opponents, and how likely one beats the best."""
    opponents = common_opponents(kinds)
    every = {kind.label: scores_of(kind, opponents) for kind in kinds} if opponents else {}
    scores = {name: found for name, found in every.items() if found is not None}
    if not scores:
        return None
    means = {name: with_interval(found, seed, samples) for name, found in scores.items()}
    order = sorted(means, key=lambda name: -means[name].mean)
    best = order[0]
    rows = []
    for name in order:
        mean, own = means[name], scores[name]
        better = probability_of_improvement(scores[best], scores[name], seed, samples)
        several = len(own) > 1
        against = "" if name == best else f"{better.mean:.0%}"
        if name != best and several and len(scores[best]) > 1:
            against += f" ({better.low:.0%} to {better.high:.0%})"
        interval = f"{100 * mean.low:.1f} to {100 * mean.high:.1f}" if several else "one seed"
        rows.append((f"`{name}`", str(len(own)), f"{mean.mean:.1%}", interval, against))
    text = (
        "The interquartile mean of games won over seeds and opponents ("
        + ", ".join(f"`{name}`" for name in opponents)
        + "), its 95% interval by a bootstrap over seeds, and how likely a run of the first kind beats one of the "
        "other against an opponent (Agarwal et al., 2021, arXiv:2108.13264)."
    )
    if min(map(len, scores.values())) < 5:
        text += " With fewer than five seeds such an interval is too narrow; with one there is none."
    columns = ("kind", "seeds", "interquartile mean", "95% interval", f"beaten by {best}")
    blocks: list[Block] = [Text(text), Table(columns, rows)]
    if len(order) > 1:
        says = "Interquartile means with their intervals over seeds."
        blocks.insert(1, Figure("together", _draw_means({name: means[name] for name in order}), says))
    return Section("All opponents together", blocks)


def _draw_means(means: dict[str, Estimate]) -> str:
    with style():
        figure, axes = new_figure(0.55 + 0.26 * len(means))
        axis = axes[0, 0]
        for number, found in enumerate(means.values()):
            if np.isfinite(found.low):
                axis.barh(number, found.high - found.low, left=found.low, height=0.55, color=COLOURS[0], alpha=0.35)
            axis.plot([found.mean, found.mean], [number - 0.32, number + 0.32], color=COLOURS[0], linewidth=2.5)
        axis.set_yticks(range(len(means)), list(means))
        axis.invert_yaxis()
        axis.grid(visible=False, axis="y")
        axis.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.1f}%")
        return to_svg(figure, "together")


# ---------------------------------------------------------------------- curves


def _curves(kinds: Sequence[Kind]) -> Iterator[Section]:
    several = any(len(kind.runs) > 1 for kind in kinds)
    for name, label, axis in (("decisions", "decisions", by_decisions), ("time", "minutes of training", by_minutes)):
        panels = list(_panels(kinds, axis))
        if panels:
            svg = draw_panels(f"curves-{name}", panels, label)
            caption = f"Over {label}." + (f" {BAND}" if several else "")
            yield Section(f"Curves over {name}", [Figure(f"curves-{name}", svg, f"Curves over {label}.", caption)])


def _panels(kinds: Sequence[Kind], axis: Axis) -> Iterator[Panel]:
    """Games won against those whom most have met; where nobody was, what was learned."""
    met = [name for kind in kinds for run in kind.runs for name in dict.fromkeys(run.opponents)]
    opponents = sorted(dict.fromkeys(met), key=lambda name: -met.count(name))[:_MOST_PANELS]
    shown = [(evaluation_scalar("win_rate", name), f"games won against {name}", "percent") for name in opponents]
    panels = [Panel(title, _lines(kinds, name, axis), "", form) for name, title, form in shown]
    if not any(panel.lines for panel in panels):
        panels = [Panel(title, _lines(kinds, name, axis), "", "log") for name, title in _LEARNING]
    yield from (panel for panel in panels if panel.lines)


def _lines(kinds: Sequence[Kind], name: str, axis: Axis) -> dict[str, Line]:
    found = {kind.label: band(kind.runs, name, axis) for kind in kinds}
    return {label: line for label, line in found.items() if line is not None}


# ---------------------------------------------------------------------- settings and time


def _settings(kinds: Sequence[Kind]) -> Section:
    """The settings in which the kinds differ, a column for each kind."""
    first = asdict(kinds[0].runs[0].settings)
    keys: dict[str, None] = {}
    for kind in kinds[1:]:
        keys |= dict.fromkeys(changes(first, asdict(kind.runs[0].settings)))
    keys = {key: None for key in keys if key not in ("name", "runs", "seed")}
    if not keys:
        return Section("Settings", [Text("The settings of all runs are the same, but for names and seeds.")])
    ordered = sorted(keys, key=lambda key: not shapes_learning(key))
    values = {kind.name: asdict(kind.runs[0].settings) for kind in kinds}
    rows = [[f"`{key}`", *(as_text(_at(found, key)) for found in values.values())] for key in ordered]
    if len(kinds) <= 4:
        return Section("Settings in which they differ", [Table(("setting", *values), rows, left=tuple(range(9)))])
    turned = [[f"`{name}`", *(row[number + 1] for row in rows)] for number, name in enumerate(values)]
    return Section(
        "Settings in which they differ", [Table(("kind", *(row[0] for row in rows)), turned, left=tuple(range(64)))]
    )


def _at(settings: dict[str, object], key: str) -> object:
    found: object = settings
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _spent(kinds: Sequence[Kind]) -> Section:
    """What each run took: decisions, time, speed."""
    rows = []
    for kind in kinds:
        for run in kind.runs:
            speed = run.curve(SPEED)
            seconds = float(run.counters.get("seconds", 0.0))
            decisions = int(run.counters.get("env_steps", 0) or (speed[0][-1] if speed else 0))
            rate = f"{decisions / seconds:,.0f}" if seconds else ""
            state = "finished" if run.results else "not finished"
            rows.append(
                (
                    f"`{run.name}`",
                    str(run.settings.seed),
                    f"{decisions:,}",
                    in_words(seconds) if seconds else "",
                    rate,
                    state,
                )
            )
    return Section(
        "Runs", [Table(("run", "seed", "decisions", "training time", "decisions a second", ""), rows, left=(0, 5))]
    )
