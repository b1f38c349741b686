"""The arms that several studies share: each one a method, as the settings in which it differs from the others."""

from dataclasses import replace
from typing import Any

from pser.studies.study import Arm

LOSS: dict[str, Any] = {"priority_signal": "loss", "priority_eps": 1e-5}
"""The Huber loss as signal: for small errors |δ|^2α instead of |δ|^α (as in the published MinAtar curves)."""
NO_WEIGHTS: dict[str, Any] = {"beta": 0.0, "beta_end": 0.0}

UNIFORM = Arm(name="uniform", about="uniform replay", settings={"replay": "uniform"})
ROTA = Arm(
    name="rota",
    about="priority 0.7^replays, no TD error: the least replayed comes first",
    settings={"replay": "pser", "eta": 0.7, "window": 0, "priority_signal": "none", "priority_eps": 0.0},
)
PER = Arm(name="per", about="PER, |δ|", settings={"replay": "per"})
PER_LOSS = Arm(name="per-loss", about="PER, Huber loss as signal", settings={"replay": "per", **LOSS})
PER_ETA = Arm(
    name="per-eta",
    about="PER with η = 0.7 (PSER without decay)",
    settings={"replay": "pser", "eta": 0.7, "window": 0},
)
PER_TD = Arm(
    name="per-currenttd",
    about="PER with CurrentTD: new transitions enter with their own TD error",
    settings={"replay": "per", "initial": "td"},
)
PER_ETA_TD = Arm(
    name="per-eta-currenttd",
    about="PER with η = 0.7 and CurrentTD (PSER with CurrentTD, without decay)",
    settings={**PER_ETA.settings, "initial": "td"},
)
PSER = Arm(
    name="pser", about="PSER as published: η = 0.7, ρ = 0.4, W = 5, MaxPrio", settings={"replay": "pser"}
)
PSER_NO_ETA = Arm(
    name="pser-eta0", about="PSER with η = 0: decay alone", settings={"replay": "pser", "eta": 0.0}
)
PSER_TD = Arm(
    name="pser-currenttd",
    about="PSER with CurrentTD: new transitions enter with their own TD error, which decays at once",
    settings={"replay": "pser", "initial": "td"},
)
PSER_LOSS = Arm(
    name="pser-loss",
    about="PSER as published, Huber loss as signal",
    settings={"replay": "pser", **LOSS},
)
PSER_LONG = Arm(
    name="pser-loss-long",
    about="PSER, Huber loss as signal, η = 0, ρ = 0.8, W = 20",
    settings={"replay": "pser", **LOSS, "eta": 0.0, "rho": 0.8, "window": 20},
)
PSER_DECAYED = Arm(
    name="pser-loss-decayed",
    about="PSER, Huber loss as signal, η = 0.7 retains only what came by decay",
    settings={"replay": "pser", **LOSS, "retain": "decayed"},
)
PSER_ADAPTIVE = Arm(
    name="pser-adaptive",
    about="PSER with η = 0, ρ = 0.8 and the adaptive window: decay goes on while it exceeds 0.01",
    settings={
        "replay": "pser",
        "eta": 0.0,
        "rho": 0.8,
        "window": "adaptive",
        "window_floor": 0.01,
        "window_limit": 50,
    },
)
BACKPROP = Arm(
    name="backprop",
    about="reward back-propagation: a reward's priority walks backward (Zhong et al. 2017)",
    settings={"replay": "backprop", **NO_WEIGHTS},
)
REAPER = Arm(
    name="reaper",
    about="ReaPER: |δ|^0.4 times the reliability of the target^0.2 (Pleiss et al. 2025)",
    settings={"replay": "reaper", "alpha": 0.4, "omega": 0.2},
)
BACKWARD = Arm(
    name="ebu",
    about="episodic backward update: whole episodes, targets built backward, β = 0.5 (Lee et al. 2019)",
    settings={"replay": "ebu"},
)
LAP = Arm(
    name="lap",
    about="LAP: max(|δ|, 1)^0.4, no importance weights (Fujimoto et al. 2020)",
    settings={
        "replay": "per",
        "alpha": 0.4,
        "priority_signal": "clipped",
        "priority_eps": 0.0,
        **NO_WEIGHTS,
    },
)


def with_seeds(arm: Arm, seeds: int) -> Arm:
    """The arm with a number of seeds of its own."""
    return replace(arm, seeds=seeds)
