"""Does the mechanism work with a network? Games whose one reward lies at the end of a chain of steps."""

from pser.studies import arms
from pser.studies.measures import WHOLE_RUN
from pser.studies.study import Contrast, Game, Study


def cliffwalk(states: int, frames: int, exploring: int) -> Game:
    """Blind Cliffwalk played online; two replays a transition, so that it matters which."""
    return Game(
        env=f"gym:pser/OnlineCliffwalk{states}-v0",
        settings={
            **_budget(frames, exploring),
            "warmup_steps": 500,
            "update_period_steps": 16,
            "target_period_steps": 200,
        },
        take_off=0.1,
    )


def _budget(frames: int, exploring: int) -> dict[str, int]:
    return {
        "budget_frames": frames,
        "epsilon_decay_steps": exploring,
        "log_period_frames": frames // 40,
    }


STUDY = Study(
    name="chain",
    question="Does backward decay spread a reward along a chain when a network learns from it?",
    arms=(
        arms.UNIFORM,
        arms.PER,
        arms.PER_ETA,
        arms.PSER_NO_ETA,
        arms.PSER,
        arms.PSER_TD,
        arms.PSER_ADAPTIVE,
        arms.BACKPROP,
        arms.LAP,
        arms.REAPER,
        arms.BACKWARD,
    ),
    games=(
        cliffwalk(10, 24_000, 3_000),
        cliffwalk(12, 40_000, 8_000),
        cliffwalk(14, 60_000, 24_000),
        Game(
            env="gym:MountainCar-v0",
            # With the usual 200 steps an episode no arm meets the goal within any budget that fits here.
            settings={
                **_budget(100_000, 10_000),
                "max_episode_steps": 1_000,
                "epsilon_end": 0.1,
                "learning_rate": 1e-3,
                "batch_size": 64,
                "target_period_steps": 500,
            },
            take_off=-900.0,
        ),
        Game(env="gym:Acrobot-v1", settings=_budget(30_000, 10_000), take_off=-300.0),
        Game(env="gym:pser/MiniGrid-DoorKey-5x5-v0", settings=_budget(60_000, 30_000), take_off=0.2),
    ),
    seeds=10,
    preset="classic",
    settings={
        "n_step": 1,  # longer returns would carry the reward back by themselves
        "alpha": 0.6,
        "beta": 0.4,
        "beta_end": 0.4,  # of runs so short, most would have β near 1 if it came there
        "batch_size": 32,
        "update_period_steps": 4,
        "epsilon_end": 0.05,
        "eval_period_frames": 0,
        "checkpoint_period_frames": 0,
        "tensorboard": False,
    },
    measure=WHOLE_RUN,
    contrasts=(
        Contrast(arm="per", against="uniform", asks="Does PER help where the reward is far?"),
        Contrast(arm="pser-eta0", against="per", asks="Does decay help (η = 0)?"),
        Contrast(arm="pser", against="per", asks="Does PSER as published help?"),
        Contrast(arm="pser", against="per-eta", asks="Does decay add anything to PER with η = 0.7?"),
        Contrast(arm="pser-currenttd", against="per", asks="Does PSER with CurrentTD help?"),
        Contrast(arm="pser-adaptive", against="per", asks="Does a longer, adaptive decay help (η = 0)?"),
        Contrast(arm="backprop", against="per", asks="Is reward back-propagation better than PER?"),
        Contrast(arm="lap", against="per", asks="Is LAP better than PER?"),
        Contrast(arm="reaper", against="per", asks="Is ReaPER better than PER?"),
        Contrast(arm="ebu", against="pser-eta0", asks="Are whole backward episodes better than decay?"),
    ),
    stopping="after 10 seeds",
    core_hours=4.5,
)
