"""Say what the priorities are made of under given settings: by arithmetic and by simulation.

$ pser anatomy --eta 0.7 --rho 0.4 --batch-size 32 --update-period-steps 4
$ pser anatomy --run runs/breakout            # the settings and the errors of a run
$ pser anatomy --page docs/anatomy.md         # the page of the documentation, with its figure
"""

import json
from dataclasses import dataclass, fields
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from pser.cli.parsing import UNSET
from pser.errors import PserError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The memory's settings, and how large the errors are."""

    alpha: float = 0.5
    """α, exponent of the priorities."""
    eta: float = 0.7
    """η, what a replayed transition keeps of its priority."""
    rho: float = 0.4
    """ρ, what each earlier step is handed."""
    window: int = 5
    """W, how many steps decay reaches back."""
    retain: Literal["all", "decayed"] = "all"
    """What η keeps a share of: every priority, as in the paper, or only what came by decay."""
    initial: Literal["max", "td"] = "max"
    """Priority of new transitions: the largest ever (MaxPrio) or their own (CurrentTD)."""
    batch_size: int = 32
    """Transitions in one update."""
    update_period_steps: int = 4
    """One update per this many steps."""
    td_median: float = 0.05
    """Median |TD error| in units of the largest priority ever."""
    td_spread: float = 1.0
    """Standard deviation of its logarithm."""
    run: Annotated[Path | None, UNSET] = None
    """Take the settings, and the size of the errors, from this run."""
    page: Annotated[Path | None, UNSET] = None
    """Write the documentation's page here, its figures into assets/ beside it."""

    def __post_init__(self) -> None:
        if self.run is not None and (named := sorted(self._given() - {"run", "page"})):
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in named)
            raise PserError(f"--run takes its settings from the run, got {flags} as well: leave that out")
        for name in ("td_median", "td_spread", "batch_size", "update_period_steps"):
            if getattr(self, name) <= 0:
                raise PserError(f"{name} must be above 0, got {getattr(self, name)}: raise it")

    def _given(self) -> set[str]:
        """The settings that are not at their defaults."""
        return {field.name for field in fields(self) if getattr(self, field.name) != field.default}


def run(settings: Settings) -> None:
    """Print the shares, or write the page."""
    from pser.analysis.anatomy.arithmetic import Surprises, decay_reach, replays_a_life
    from pser.analysis.anatomy.page import Case, measure
    from pser.analysis.anatomy.text import bars, lines_of, recorded_shares
    from pser.memory.prioritization import PSER

    if settings.page is not None:
        _write_page(settings.page)
        return
    surprises = Surprises(median=settings.td_median, spread=settings.td_spread)
    case = Case(
        f"η = {settings.eta:g}{' of what came by decay' if settings.retain == 'decayed' else ''}, ρ = {settings.rho:g}",
        _prioritization(settings),
        settings.initial,
        replays_a_life(settings.batch_size, settings.update_period_steps),
    )
    recorded: dict[str, float] = {}
    if settings.run is not None:
        case, surprises, memory = _of_run(settings.run)
        recorded = recorded_shares(memory)
    print(
        f"{case.name}: {case.replays:g} replays a life, median |δ| {surprises.median:.3g} of the largest priority"
    )
    (row,) = measure([case], surprises)
    print("\n".join(lines_of(row)))
    if recorded:
        print("\n".join(bars(f"as recorded by {settings.run}, at its end", recorded)))
    rule = case.prioritization
    if (
        isinstance(rule, PSER)
        and case.initial == "max"
        and case.eta > 0
        and rule.rho > 0
        and rule.window != 0
    ):
        window = rule.window if isinstance(rule.window, int) else inf
        whole, tenth = (
            min(decay_reach(size, case.eta, rule.rho, case.replays), window) for size in (1.0, 0.1)
        )
        print(
            f"at the end of a life decay is felt {whole:.1f} steps back from the largest surprise, "
            f"{tenth:.1f} from a tenth of it"
        )


def _prioritization(settings: Settings) -> Any:
    import pser

    return pser.PSER(
        alpha=settings.alpha,
        eta=settings.eta,
        rho=settings.rho,
        window=settings.window,
        retain=settings.retain,
    )


def _of_run(folder: Path) -> tuple[Any, Any, dict[str, float]]:
    """Settings of a run; its mean |δ| over its largest priority gives the size of the errors; its memory at the end."""
    from pser.analysis.anatomy.arithmetic import Surprises, replays_a_life
    from pser.analysis.anatomy.page import Case
    from pser.records.folder import RunFolder
    from pser.records.manifest import read_manifest, settings_of

    files = RunFolder(folder)
    train = settings_of(read_manifest(files.manifest))
    rows = [json.loads(line) for line in files.train.read_text().splitlines()] if files.train.exists() else []
    known = [row for row in rows if row.get("td_abs_mean")]
    if not known:
        raise PserError(f"{folder} has no record of its TD errors yet: let it learn for a while")
    ratio = known[-1]["td_abs_mean"] / known[-1]["memory"]["max_priority"]
    spread = 1.0
    median = max(ratio, 1e-9) / 2.718281828459045 ** (spread**2 / 2)  # of a lognormal with that mean
    replays = replays_a_life(train.agent.batch_size, train.agent.update_period_steps)
    case = Case(train.replay.label, train.replay.prioritization, train.replay.initial, replays)
    return case, Surprises(median=median, spread=spread), known[-1]["memory"]


def _write_page(page: Path) -> None:
    from pser.analysis.anatomy.arithmetic import Surprises
    from pser.analysis.anatomy.figures import draw_insertion, draw_sources
    from pser.analysis.anatomy.page import measure, render, standard_cases

    surprises = Surprises()
    rows = measure(standard_cases(), surprises)
    draw_sources(rows, page.parent / "assets")
    draw_insertion(surprises, page.parent / "assets")
    page.write_text(render(rows, surprises, "assets/anatomy.png"))
    print(f"written: {page}")
