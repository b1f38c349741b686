"""Every setting of a training run, in groups; the command line and the manifest are made from these.

Units are part of the names. A *step* is one decision of one environment; a *frame* is one frame of the game
(4 per step on Atari, 1 elsewhere). With several environments both count over all of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import pser
from pser.env.make import split_name
from pser.env.names import no_such
from pser.errors import require
from pser.learner.registry import LEARNERS, LOSSES
from pser.learner.strategies import INITIAL, STRATEGIES, changed, flat_names, name_of


def _at_least(group: object, limit: float, *names: str) -> None:
    for name in names:
        value = getattr(group, name)
        require(value >= limit, f"{name} must be at least {limit:g}", value, "raise it")


def _in_unit_interval(group: object, *names: str) -> None:
    for name in names:
        value = getattr(group, name)
        require(0.0 <= value <= 1.0, f"{name} must lie in [0, 1]", value, "choose a value in between")


def _one_of(group: object, name: str, choices: Mapping[str, Any]) -> None:
    value = getattr(group, name)
    require(value in choices, f"{name} must be one of {', '.join(choices)}", value, "name one of them")


NETWORKS = ("auto", "nature", "der", "minatar", "mlp")
"""The networks that have a name of their own."""


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """What is played, and under which rules."""

    env: str
    """The game: atari:NAME, minatar:NAME or gym:ID."""
    num_envs: int = 1
    """Copies of the game stepped together; each decision of the network covers all of them."""
    noop_max: int = 0
    """Atari: up to this many no-op actions after a reset, while training."""
    sticky_actions: float = 0.0
    """Probability that the game repeats the previous action instead of the chosen one (Atari, MinAtar)."""
    max_episode_steps: int = 0
    """Episodes are truncated after this many steps; 0 leaves the game's own limit."""
    life_loss: bool = False
    """Atari: a lost life ends the learning episode (but not the game)."""
    clip_rewards: bool = False
    """The learner sees rewards clipped to [-1, 1]; the records always hold the game's own."""

    def __post_init__(self) -> None:
        split_name(self.env)
        _at_least(self, 1, "num_envs")
        _at_least(self, 0, "noop_max", "max_episode_steps")
        _in_unit_interval(self, "sticky_actions")

    @property
    def family(self) -> str:
        """The part before the colon: atari, minatar or gym."""
        return split_name(self.env)[0]


SIGNALS = {"huber": "loss", "sqrt_huber": "sqrt_loss"}
"""Other names of priority signals: with the Huber loss, the authors' code calls the root of it so."""


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Which transitions are kept, and how they are chosen for learning."""

    prioritization: Any = field(default_factory=pser.PSER)
    """The replay strategy with its settings, each of which is a flag (strategies.py)."""
    capacity: int = 1_000_000
    """Transitions the memory holds."""
    n_step: int = 1
    """Rewards summed before the network's estimate takes over."""
    initial: Literal["max", "td"] = "max"
    """Priority of a new transition: the largest ever recorded (MaxPrio), or its own TD error (CurrentTD)."""
    beta: float = 0.5
    """Exponent of the importance-sampling weights at the start of the run."""
    beta_end: float = 0.5
    """The same exponent at the end of the run; in between it grows linearly with the frames."""
    priority_signal: Literal["td", "loss", "sqrt_loss", "kl", "clipped", "none", "huber", "sqrt_huber"] = "td"
    """What the memory is told: the TD error; the loss; its root, as in the authors' code (also sqrt_huber); kl, a
    distributional loss less its target's entropy; max(|TD error|, 1) as in LAP (clipped); or none, so that with
    --eta a transition's turn depends on its replays alone."""

    def __post_init__(self) -> None:
        _at_least(self, 1, "capacity", "n_step")
        _in_unit_interval(self, "beta", "beta_end")
        object.__setattr__(self, "priority_signal", SIGNALS.get(self.priority_signal, self.priority_signal))

    @property
    def replay(self) -> str:
        """The name of the strategy."""
        return name_of(self.prioritization)

    @property
    def starts_with_td(self) -> bool:
        """Whether new transitions enter with a TD error of their own; uniform replay has no use for one."""
        return self.initial == "td" and self.replay != "uniform"

    @property
    def label(self) -> str:
        """Sampling_Initial_Decay as in the paper's ablation: PSER_MaxPrio_MAX, PER_CurrentTD, Uniform."""
        return STRATEGIES[self.replay].label(self.prioritization, INITIAL[self.initial])


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The network, what it is trained towards, and how often."""

    learner: str = "dqn"
    """The learner; dqn is the whole family of the switches below."""
    network: str = "auto"
    """The network: nature, der, minatar, mlp, auto (the one of the environment's family), or one's own as
    package.module:Class, made as Class(observation_shape, num_outputs)."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of the mlp network."""
    loss: str = "huber"
    """The loss: huber (one value per action), or c51 (a distribution over atoms per action)."""
    atoms: int = 51
    """C51: atoms of a distribution."""
    v_min: float = -10.0
    """C51: the smallest return that an atom stands for."""
    v_max: float = 10.0
    """C51: the largest return that an atom stands for."""
    noisy: bool = False
    """Fully connected layers carry learned noise, which explores instead of random actions."""
    noisy_sigma: float = 0.5
    """Noisy: the noise's scale at the start."""
    double_q: bool = False
    """The online network chooses the bootstrap action, the target network rates it."""
    dueling: bool = False
    """The head is split into a state value and action advantages."""
    dueling_shared: bool = False
    """Dueling: the two share their hidden layer, rather than having one each."""
    gamma: float = 0.99
    """Discount per step."""
    batch_size: int = 32
    """Transitions in one update."""
    warmup_steps: int = 50_000
    """Steps of random play before the first update."""
    update_period_steps: int = 4
    """One update per this many steps."""
    target_period_steps: int = 10_000
    """The target network is copied from the online one every this many steps."""
    max_grad_norm: float = 0.0
    """Gradients are scaled down to this norm; 0 leaves them alone."""

    def __post_init__(self) -> None:
        _one_of(self, "learner", LEARNERS)
        _one_of(self, "loss", LOSSES)
        own = ":" in self.network and all(self.network.split(":", 1))
        rule = f"network must be one of {', '.join(NETWORKS)} or package.module:Class"
        require(own or self.network in NETWORKS, rule, self.network, "name one")
        _in_unit_interval(self, "gamma")
        _at_least(self, 2, "atoms")
        require(self.v_min < self.v_max, "v_min must be below v_max", (self.v_min, self.v_max), "lower v_min")
        require(self.noisy_sigma > 0, "noisy_sigma must be positive", self.noisy_sigma, "0.5 is usual")
        _at_least(self, 1, "batch_size", "update_period_steps", "target_period_steps")
        _at_least(self, 0, "warmup_steps", "max_grad_norm")
        require(
            len(self.hidden) > 0 and min(self.hidden) > 0,
            "hidden needs at least one positive width",
            self.hidden,
            "for example --hidden 256 256",
        )


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings:
    """The rule that turns gradients into steps."""

    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """RMSProp or Adam."""
    learning_rate: float = 2.5e-4
    """Step size."""
    rms_decay: float = 0.95
    """RMSProp: decay of the running averages."""
    centered: bool = True
    """RMSProp: divide by the standard deviation of the gradient, not by its root mean square."""
    momentum: float = 0.0
    """RMSProp: momentum of the steps."""
    optimizer_eps: float = 1e-5
    """What keeps the divisor from 0. Adam: added to the denominator."""
    eps_in_sqrt: bool = True
    """RMSProp: optimizer_eps stands inside the square root (DQN's authors), not beside it (PyTorch)."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "optimizer_eps"):
            value = getattr(self, name)
            require(value > 0, f"{name} must be positive", value, "raise it")
        for name in ("rms_decay", "momentum"):
            value = getattr(self, name)
            require(0.0 <= value < 1.0, f"{name} must lie in [0, 1)", value, "choose a value in between")


@dataclass(frozen=True, kw_only=True)
class ExplorationSettings:
    """How often a random action is played while training."""

    epsilon_start: float = 1.0
    """Share of random actions until learning starts."""
    epsilon_end: float = 0.01
    """Share of random actions at the end of the decay."""
    epsilon_decay_steps: int = 1_000_000
    """The share falls linearly over this many steps, counted from the end of warmup_steps."""
    epsilon_spread: float = 0.0
    """Several environments explore unequally: environment i of N by the share to the power 1 + spread · i/(N - 1)."""

    def __post_init__(self) -> None:
        _in_unit_interval(self, "epsilon_start", "epsilon_end")
        _at_least(self, 0, "epsilon_spread")
        _at_least(self, 1, "epsilon_decay_steps")


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """When training stops for a measurement, and how it is made."""

    eval_period_frames: int = 1_000_000
    """Evaluate after every this many frames of training; 0 never evaluates."""
    eval_frames: int = 0
    """Frames of one evaluation (the episodes then running are finished); 0 counts episodes instead."""
    eval_episodes: int = 20
    """Episodes of one evaluation, where eval_frames is 0 (the flag alone makes it 0)."""
    eval_epsilon: float = 0.001
    """Share of random actions in evaluation."""
    eval_noop_max: int = 30
    """Atari: up to this many no-op actions after a reset, in evaluation."""
    eval_num_envs: int = 1
    """Copies of the game played together in evaluation."""

    def __post_init__(self) -> None:
        _at_least(self, 0, "eval_period_frames", "eval_frames", "eval_noop_max")
        _at_least(self, 1, "eval_episodes", "eval_num_envs")
        _in_unit_interval(self, "eval_epsilon")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The length of the run, its seed, and what it leaves behind."""

    seed: int = 0
    """Seed of everything random in the run."""
    budget_frames: int = 200_000_000
    """Frames of training (also --frames)."""
    log_period_frames: int = 10_000
    """One line of train.jsonl per this many frames."""
    checkpoint_period_frames: int = 1_000_000
    """One checkpoint per this many frames; 0 writes one at the end only."""
    inspect_period_frames: int = 0
    """Note what the memory holds every this many frames, for pser inspect; 0 never does."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network runs; auto takes a GPU if there is one."""
    threads: int = 1
    """Threads of the network on the CPU."""
    tensorboard: bool = True
    """Write TensorBoard events (needs the tensorboard package; without it, none are written)."""
    track: Literal["none", "wandb", "trackio"] = "none"
    """Send the numbers of the records to Weights & Biases or trackio as well (needs that package)."""

    def __post_init__(self) -> None:
        _at_least(self, 0, "seed", "checkpoint_period_frames", "inspect_period_frames")
        _at_least(self, 1, "budget_frames", "log_period_frames", "threads")
        require(self.threads <= 1024, "threads must be at most 1024", self.threads, "one per core is plenty")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """All settings of one training run."""

    game: GameSettings
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    exploration: ExplorationSettings = field(default_factory=ExplorationSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def __post_init__(self) -> None:
        for name in GROUPS:
            for key, value in vars(getattr(self, name)).items():
                finite = not isinstance(value, float) or math.isfinite(value)
                require(finite, f"{key} must be finite", value, "choose a number")
        capacity, batch, n_step = self.replay.capacity, self.agent.batch_size, self.replay.n_step
        require(
            capacity >= batch,
            f"capacity must hold at least one batch of {batch}",
            capacity,
            "raise capacity or lower batch_size",
        )
        envs = self.game.num_envs
        require(
            capacity >= envs * (n_step + 1),
            f"capacity must hold {n_step + 1} steps (n_step + 1) of each of {envs} environments",
            capacity,
            "raise capacity",
        )
        warmup = self.agent.warmup_steps
        require(
            warmup >= envs * n_step,
            f"warmup_steps must complete a transition of {n_step} steps in each of {envs} environments",
            warmup,
            "raise warmup_steps",
        )
        signal, loss = self.replay.priority_signal, self.agent.loss
        require(
            signal != "kl" or LOSSES[loss].of_distributions,
            f"priority_signal kl needs a loss of distributions, which {loss} is not",
            signal,
            "use td or loss",
        )

    def override(self, values: Mapping[str, Any]) -> "TrainSettings":
        """A copy in which each named setting, in whichever group it lives, has the given value."""
        groups: dict[str, dict[str, Any]] = {}
        flat: dict[str, Any] = {}
        for name, value in values.items():
            if name == "replay" or name in STRATEGY_FIELDS:
                flat[name] = value
            elif name in GROUP_OF_FIELD:
                groups.setdefault(GROUP_OF_FIELD[name], {})[name] = value
            else:
                raise no_such("setting", name, ["replay", *STRATEGY_FIELDS, *GROUP_OF_FIELD])
        if flat:
            rule = groups.setdefault("replay", {}).get("prioritization", self.replay.prioritization)
            groups["replay"]["prioritization"] = changed(rule, flat)
        return replace(self, **{group: replace(getattr(self, group), **new) for group, new in groups.items()})


GROUPS: dict[str, type] = {
    "game": GameSettings,
    "replay": ReplaySettings,
    "agent": AgentSettings,
    "optimizer": OptimizerSettings,
    "exploration": ExplorationSettings,
    "evaluation": EvaluationSettings,
    "run": RunSettings,
}
"""Group of TrainSettings → its class; field names are unique over all groups."""

GROUP_OF_FIELD: dict[str, str] = {f.name: group for group, cls in GROUPS.items() for f in fields(cls)}
"""Field → the group it lives in."""

STRATEGY_FIELDS: dict[str, Any] = {
    name: hint for strategy in STRATEGIES for name, hint in flat_names(strategy).items()
}
"""Setting of a replay strategy → the type of its values; `override`, flags and manifests name them like fields."""
