"""What a study is: question, arms, games, seeds, budget, measure and test, declared before the first run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pser.analysis.statistics.ranks import mean_ranks
from pser.errors import PserError
from pser.studies.advice import Advice
from pser.studies.measures import LAST_TENTH, Measure

if TYPE_CHECKING:
    from pathlib import Path

    from pser.learner.settings import TrainSettings
    from pser.studies.record import Record
    from pser.studies.results import Results
    from pser.studies.telling import Told


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One of the methods that are compared."""

    name: str
    """Short name, also of its folder."""
    about: str
    """What it is, in a few words."""
    settings: Mapping[str, Any]
    """The settings in which it differs from the others."""
    seeds: int | None = None
    """Seeds of this arm; None takes the study's."""
    engine: Mapping[str, Any] | None = None
    """Who carries its runs out, as a manifest names it (`{"name": "ray", "actors": 2, ...}`); None: one process."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """A game of the study, with its budget."""

    env: str
    """The game, as `pser train` names it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of this game alone, over those of the study."""
    seeds: int | None = None
    """Seeds on this game; None takes the study's."""
    take_off: float | None = None
    """A run whose measure exceeds this has met the reward and learned from it; None: not asked."""

    @property
    def folder(self) -> str:
        """The name of the folder its records are in."""
        return self.env.rpartition("pser/")[2].replace(":", "-").replace("/", "-")


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A comparison that the study was made for."""

    arm: str
    against: str
    asks: str
    """The question that it answers, as a sentence."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Several pairs of arms that differ in the same thing, tested together, which shows smaller differences; `arm` and
    `against` then say what the two sides have in common."""
    advice: Advice | None = None
    """What to take after it; None if nobody has to choose between the two."""

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """The pairs of arms: its own, or the several."""
        return self.pairs or ((self.arm, self.against),)

    @property
    def named(self) -> set[str]:
        """All arms that it compares."""
        return {name for pair in self.compared for name in pair}


@dataclass(frozen=True)
class Planned:
    """One run of a study."""

    game: Game
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        """As tables and messages call it."""
        return f"{self.game.env} {self.arm.name} seed {self.seed}"

    @property
    def path(self) -> str:
        """Where it is kept, below the study's folder."""
        return f"{self.game.folder}/{self.arm.name}/seed-{self.seed}"


@dataclass(frozen=True, kw_only=True)
class Study:
    """A declared experiment; its runs are the grid of games, arms and seeds."""

    name: str
    question: str
    arms: tuple[Arm, ...]
    games: tuple[Game, ...]
    seeds: int
    """Seeds of each arm on each game, unless these have their own number."""
    first_seed: int = 0
    """The first of them: a study of seeds that no other has used confirms what others made one expect."""
    preset: str | None = None
    """The preset the settings start from; None takes that of each game's family."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all runs, over the preset's."""
    measure: Measure = LAST_TENTH
    """The number that stands for a run."""
    contrasts: tuple[Contrast, ...] = ()
    """The comparisons to be tested; their p-values are corrected together."""
    stopping: str
    """When the study ends, whatever it shows."""
    only_if: str = ""
    """What must come to pass for it to be run at all; empty: nothing."""
    core_hours: float
    """About what all its runs take."""
    seen_seeds: int = 0
    """How many seeds of its own runs had been seen when it was declared, and made one ask: what it shows is told
    without them as well."""
    remarks: tuple[str, ...] = ()
    """What a reader has to know that the records cannot tell, such as runs that were not kept, and why."""
    best_other_seeds: int | None = None
    """Seeds of one arm more: of those without a number of their own, the one that ranks highest once all of the
    study's seeds are there; None: no arm is chosen."""
    tell: "Callable[[Results], Told] | None" = None
    """What the records say, where it is more than the contrasts."""
    figures: "Mapping[str, Callable[[Results, Path, str], list[Path]]]" = field(default_factory=dict)
    """Name of each figure of its own → what draws it into a folder, under that name; the files that are written."""
    tests: str = ""
    """What `tell` tests and how, in words; empty if it only describes."""

    @property
    def rule(self) -> str:
        """When it is run, and when it ends."""
        return f"run only if {self.only_if}; then {self.stopping}" if self.only_if else self.stopping

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise PserError(f"arms need names of their own, got {', '.join(names)}: rename one")
        for contrast in self.contrasts:
            if len(contrast.named) < 2 * len(contrast.compared):
                raise PserError(
                    f"an arm counts once in a contrast, {contrast.asks!r} names one twice: drop a pair"
                )
            for name in sorted(contrast.named):
                if name not in names:
                    raise PserError(f"a contrast names arms of its study, got {name!r}: declare that arm")
        if not names or not self.games or self.seeds < 1 or self.first_seed < 0:
            raise PserError(
                f"a study needs an arm, a game and seeds from 0 on, {self.name} lacks one: declare it"
            )
        if not 0 <= self.seen_seeds < self.seeds:
            raise PserError(
                f"some of a study's {self.seeds} seeds must be new, got seen_seeds={self.seen_seeds}: lower it"
            )

    def runs(self, records: "Mapping[str, Record]", seeds: int | None = None) -> Sequence[Planned]:
        """The runs in order: the first seed of all games and arms before the second, so every stop is balanced.

        `records` holds what is finished, by path, for studies that choose their next runs by it.
        """
        planned = list(self._grid(seeds))
        if seeds is None and self.best_other_seeds is not None:
            best = self.best_other(records)
            if best is not None:
                extended = replace(best, seeds=self.best_other_seeds)
                arms = tuple(extended if arm == best else arm for arm in self.arms)
                planned = list(replace(self, arms=arms)._grid(None))
        return planned

    def best_other(self, records: "Mapping[str, Record]") -> Arm | None:
        """Of the arms without a number of seeds of their own, the one with the best mean rank over the games, all by
        their first seeds alone; None as long as one of these runs is missing. Of equals the first."""
        others = [arm for arm in self.arms if arm.seeds is None]
        table = []
        for game in self.games:
            row = []
            for arm in others:
                paths = [Planned(game, arm, self.first_seed + number).path for number in range(self.seeds)]
                made = [self.measure.compute(records[path].curve) for path in paths if path in records]
                values = [value for value in made if value is not None]
                if len(values) < self.seeds:
                    return None
                row.append(sum(values) / len(values))
            table.append(row)
        ranks = mean_ranks(table)
        return others[ranks.index(min(ranks))]

    def _grid(self, seeds: int | None) -> Iterable[Planned]:
        counts = {
            (game.env, arm.name): seeds or max(arm.seeds or self.seeds, game.seeds or self.seeds)
            for game in self.games
            for arm in self.arms
        }
        for number in range(max(counts.values())):
            for game in self.games:
                for arm in self.arms:
                    if number < counts[game.env, arm.name]:
                        yield Planned(game, arm, self.first_seed + number)

    def settings_of(self, run: Planned) -> "TrainSettings":
        """All settings of one run."""
        from pser.learner.presets import preset_settings

        changes = {**self.settings, **run.game.settings, **run.arm.settings, "seed": run.seed}
        return preset_settings(self.preset_of(run.game), run.game.env).override(changes)

    def game_of(self, env: str) -> Game | None:
        """The study's game of that name, however it is spelled; None if it has none."""
        return next((game for game in self.games if game.env.casefold() == env.casefold()), None)

    def declares(self, env: str, arm: str) -> bool:
        """Whether a run of this arm on this game belongs to the study."""
        return arm in {declared.name for declared in self.arms} and self.game_of(env) is not None

    def budget_frames(self, game: Game) -> int:
        """Frames of one run of the game."""
        return self.settings_of(Planned(game, self.arms[0], 0)).run.budget_frames

    def preset_of(self, game: Game) -> str:
        """The preset that a game's settings start from."""
        from pser.learner.presets import default_preset

        return self.preset or default_preset(game.env)

    def only(self, arms: Sequence[str] = (), games: Sequence[str] = ()) -> "Study":
        """The study restricted to some arms and games; contrasts between others are left out."""
        kept_arms = tuple(arm for arm in self.arms if not arms or arm.name in arms)
        kept_games = tuple(game for game in self.games if not games or game.env in games)
        _refuse_unknown("arm", arms, [arm.name for arm in self.arms])
        _refuse_unknown("game", games, [game.env for game in self.games])
        names = {arm.name for arm in kept_arms}
        contrasts = tuple(c for c in self.contrasts if c.named <= names)
        return replace(self, arms=kept_arms, games=kept_games, contrasts=contrasts)


def _refuse_unknown(what: str, named: Sequence[str], known: Sequence[str]) -> None:
    for name in named:
        if name not in known:
            raise PserError(f"the study has no {what} {name!r}: choose from {', '.join(known)}")
