"""Does Rainbow learn faster than DQN on MinAtar, under every replay strategy; and does PSER help it?"""

from pser.learner.presets import RAINBOW_ON_MINATAR
from pser.studies.minatar import FAST
from pser.studies.results import Results
from pser.studies.study import Arm, Contrast, Game, Study
from pser.studies.telling import Told, of_contrasts

REPLAYS = {"uniform": "uniform replay", "per": "PER", "pser": "PSER as published"}


def tell(results: Results) -> Told:
    """How often Rainbow's mean is above DQN's, by how much on each game, and what the tests say."""
    above, pairs, ranges = 0, 0, []
    for game in results.study.games:
        means = {
            agent: [results.cells[game.env, f"{agent}-{replay}"].mean for replay in REPLAYS]
            for agent in ("rainbow", "dqn")
        }
        known = [(x, y) for x, y in zip(means["rainbow"], means["dqn"], strict=True) if x == x and y == y]
        if not known:
            continue
        above += sum(x > y for x, y in known)
        pairs += len(known)
        (low, high), (other_low, other_high) = (
            (min(column), max(column)) for column in zip(*known, strict=True)
        )
        name = game.env.partition(":")[2]
        ranges.append(f"{name} {low:.1f} to {high:.1f} against {other_low:.1f} to {other_high:.1f}")
    if not pairs:
        return Told("Not known yet: no runs of both agents on one game.")
    return Told(
        f"Rainbow's mean is above DQN's in {above} of {pairs} pairs of game and replay ({'; '.join(ranges)}). "
        f"{of_contrasts(results)}"
    )


STUDY = Study(
    name="rainbow",
    question="Is Rainbow above DQN on MinAtar, and does PSER go well with it?",
    arms=(
        *(
            Arm(name=f"dqn-{name}", about=f"DQN, {about}", settings={"replay": name})
            for name, about in REPLAYS.items()
        ),
        *(
            Arm(
                name=f"rainbow-{name}",
                about=f"Rainbow, {about}",
                settings={"replay": name, **RAINBOW_ON_MINATAR},
            )
            for name, about in REPLAYS.items()
        ),
    ),
    games=(Game(env="minatar:breakout"), Game(env="minatar:freeway", take_off=3.0)),
    seeds=3,
    settings=FAST,
    contrasts=(
        *(
            Contrast(arm=f"rainbow-{name}", against=f"dqn-{name}", asks=f"Is Rainbow above DQN with {about}?")
            for name, about in REPLAYS.items()
        ),
        Contrast(arm="rainbow-per", against="rainbow-uniform", asks="Does PER help Rainbow?"),
        Contrast(arm="rainbow-pser", against="rainbow-per", asks="Is PSER better than PER in Rainbow?"),
    ),
    stopping="after 3 seeds; if Rainbow is not above DQN, its ablation follows (`rainbow-parts`)",
    core_hours=3.5,
    tell=tell,
)
