"""What are the priorities made of, on the paper's own ground? Atari with the paper's settings, shortened."""

from pser.studies.arms import PER, PSER
from pser.studies.report import short_name
from pser.studies.results import Results
from pser.studies.sources import SHARES, mean_share
from pser.studies.study import Game, Study
from pser.studies.telling import Told


def tell(results: Results) -> Told:
    """PSER's mass by source, over the games."""
    shares = {source: mean_share(results, "pser", column) for source, column in SHARES.items()}
    known = {source: share for source, share in shares.items() if share is not None}
    if not known:
        return Told("Not known yet: no run of PSER has recorded its sources.")
    listed = ", ".join(f"{source} {100 * share:.1f}%" for source, share in known.items())
    games = [short_name(record.env) for record in results.records.values() if record.arm == "pser"]
    over = ", ".join(dict.fromkeys(games))
    few = (
        f" ({len(set(games))} of {len(results.study.games)} games)"
        if len(set(games)) < len(results.study.games)
        else ""
    )
    return Told(f"PSER's sampling mass at the end of the runs on {over}{few}: {listed}.")


STUDY = Study(
    name="anatomy",
    question="What are PSER's priorities made of on Atari with the paper's settings?",
    arms=(PSER, PER),
    games=(Game(env="atari:Breakout"), Game(env="atari:Pong"), Game(env="atari:Seaquest")),
    seeds=1,
    preset="paper",
    settings={
        "capacity": 250_000,  # as many steps as a run has: nothing is overwritten, and it fits into memory
        "warmup_steps": 20_000,
        "epsilon_decay_steps": 100_000,
        "target_period_steps": 4_000,
        "budget_frames": 1_000_000,
        "log_period_frames": 20_000,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 200_000,
        "tensorboard": False,
    },
    stopping="after one seed a game: it describes the priorities, and compares no scores",
    core_hours=6,
    tell=tell,
)
