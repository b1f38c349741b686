"""The training loop: what happens when, and that it can be stopped and moved."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pser
from pser.env.game import Step
from pser.errors import PserError
from pser.learner import course
from pser.learner.events import (
    CheckpointDue,
    EpisodeFinished,
    EvaluationDue,
    InspectionDue,
    IntervalLogged,
    TrainingFinished,
    TrainingStopped,
)
from pser.learner.games import training_game
from pser.learner.loop import Trainer
from pser.learner.presets import classic, preset_settings

torch.set_num_threads(1)
CPU = torch.device("cpu")
SMALL = {
    "n_step": 1,
    "hidden": (8, 8),
    "batch_size": 8,
    "capacity": 200,
    "warmup_steps": 20,
    "budget_frames": 120,
    "log_period_frames": 40,
    "eval_period_frames": 0,
    "checkpoint_period_frames": 0,
    "target_period_steps": 10,
    "epsilon_decay_steps": 50,
}


class CountingGame:
    """E environments that count their steps; an episode is `length` steps, and its last step pays 5."""

    name, num_actions, frames_per_step, exact_state = "gym:Counting", 2, 4, True
    observation = pser.Array((2,), np.float32)

    def __init__(self, num_envs, length=7, truncates=False):
        self.num_envs, self.length, self.truncates = num_envs, length, truncates
        self.count = np.zeros(num_envs, np.int64)

    def _observe(self):
        return np.stack([self.count, np.arange(self.num_envs)], 1).astype(np.float32)

    def reset(self, seed=None):
        self.count[:] = 0
        return self._observe()

    def step(self, actions):
        self.count += 1
        done = self.count == self.length
        final = self._observe()
        lengths = np.where(done, self.count, 0)
        self.count[done] = 0
        no = np.zeros(self.num_envs, bool)
        reward = np.where(done, 5.0, 0.5)
        returns = np.where(done, 5.0 + 0.5 * (self.length - 1), np.nan)
        ended = (no, done) if self.truncates else (done, no)
        return Step(reward, final, *ended, self._observe(), done, returns, lengths)

    def get_state(self):
        return {"count": self.count.copy()}

    def set_state(self, state):
        self.count[:] = state["count"]
        return self._observe()


def trainer(num_envs=1, game=None, **changes):
    settings = classic("gym:CartPole-v1").override({**SMALL, "num_envs": num_envs, **changes})
    return Trainer(settings, game or CountingGame(num_envs), CPU)


def events_of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def test_updates_start_after_the_warmup_and_keep_their_period():
    run = trainer(update_period_steps=4)
    list(run.train())
    assert run.counters.steps == 30  # 120 frames, 4 per step
    assert run.counters.updates == 30 // 4 - 20 // 4


@pytest.mark.parametrize("num_envs", [3, 5])
def test_several_environments_keep_the_ratio_of_updates_to_steps(num_envs):
    run = trainer(num_envs, update_period_steps=2, budget_frames=1200)
    list(run.train())
    assert run.counters.updates == run.counters.steps // 2 - 10


def test_target_network_is_copied_at_its_period(monkeypatch):
    run = trainer(target_period_steps=10, budget_frames=200)
    at = []
    monkeypatch.setattr(run.agent, "update_target", lambda: at.append(run.counters.steps))
    list(run.train())
    assert at == [30, 40, 50]


def test_epsilon_is_constant_until_learning_then_linear():
    run = trainer(epsilon_start=1.0, epsilon_end=0.2, epsilon_decay_steps=40)
    seen = {}
    for steps in (0, 20, 40, 60, 1000):
        run.counters.steps = steps
        seen[steps] = run.epsilon()
    assert seen == pytest.approx({0: 1.0, 20: 1.0, 40: 0.6, 60: 0.2, 1000: 0.2})


def test_beta_is_annealed_over_the_budget():
    run = trainer(beta=0.4, beta_end=1.0)
    run.counters.steps = 15  # half of the 120 frames
    assert run.beta() == pytest.approx(0.7)


def test_events_come_at_their_periods_and_a_checkpoint_last():
    run = trainer(eval_period_frames=60, checkpoint_period_frames=60)
    events = list(run.train())
    assert [event.frames for event in events_of(IntervalLogged, events)] == [40, 80, 120]
    assert [event.frames for event in events_of(EvaluationDue, events)] == [60, 120]
    assert [event.frames for event in events_of(CheckpointDue, events)] == [60, 120]
    assert [type(event) for event in events[-4:]] == [
        IntervalLogged,
        EvaluationDue,
        CheckpointDue,
        TrainingFinished,
    ]


def test_a_budget_between_periods_still_ends_with_a_row_an_evaluation_and_a_checkpoint():
    run = trainer(budget_frames=100, eval_period_frames=80)
    events = list(run.train())
    assert [event.frames for event in events_of(IntervalLogged, events)] == [40, 80, 100]
    assert [event.frames for event in events_of(EvaluationDue, events)] == [80, 100]
    assert [event.frames for event in events_of(CheckpointDue, events)] == [100]


def test_the_memory_is_inspected_at_its_period_at_the_end_and_before_a_checkpoint():
    run = trainer(budget_frames=140, inspect_period_frames=60, checkpoint_period_frames=60)
    events = list(run.train())
    assert [event.frames for event in events_of(InspectionDue, events)] == [60, 120, 140]
    assert [type(event) for event in events[-3:]] == [InspectionDue, CheckpointDue, TrainingFinished]
    assert events_of(InspectionDue, list(trainer().train())) == []


def test_the_batches_drawn_last_are_remembered_for_inspections(monkeypatch):
    run, told = trainer(inspect_period_frames=60, budget_frames=400), []
    update = run.memory.update_priorities
    monkeypatch.setattr(
        run.memory,
        "update_priorities",
        lambda ids, td: told.append((ids.tolist(), td.tolist())) or update(ids, td),
    )
    list(run.train())
    assert [(ids.tolist(), td.tolist()) for ids, td in run.drawn] == told
    assert len(told) == run.counters.updates > 1


def test_rows_hold_the_means_of_their_interval():
    events = list(trainer(budget_frames=120).train())
    finished = events_of(EpisodeFinished, events)
    assert [(event.frames, event.episode_return, event.episode_length) for event in finished] == [
        (28, 8.0, 7),
        (56, 8.0, 7),
        (84, 8.0, 7),
        (112, 8.0, 7),
    ]
    rows = [event.row for event in events_of(IntervalLogged, events)]
    assert [row["return_count"] for row in rows] == [1, 1, 2]
    assert [row["episodes"] for row in rows] == [1, 2, 4]
    assert rows[0]["return_mean"] == 8.0
    assert rows[0]["loss"] is None
    assert rows[2]["loss"] > 0
    assert rows[2]["memory"]["size"] == 30


def test_frames_per_second_are_those_of_the_training_alone(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(course, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    run = trainer(eval_period_frames=60, checkpoint_period_frames=20)
    step = run.game.step

    def one_second(actions):
        clock.now += 1.0
        return step(actions)

    run.game.step = one_second
    rows = []
    for event in run.train():
        if isinstance(event, IntervalLogged):
            rows.append(event.row)
        elif isinstance(event, EvaluationDue | CheckpointDue):
            clock.now += 100.0
    assert [row["frames_per_second"] for row in rows] == [4.0, 4.0, 4.0]


def test_clipped_rewards_reach_the_memory_and_raw_ones_the_records():
    run = trainer(clip_rewards=True)
    events = list(run.train())
    assert set(run.memory.sample(200, 0.5).reward) == {0.5, 1.0}
    assert events_of(EpisodeFinished, events)[0].episode_return == 8.0


@pytest.mark.parametrize("truncates", [False, True])
def test_final_observations_reach_the_memory(truncates):
    run = trainer(game=CountingGame(1, truncates=truncates))
    list(run.train())
    batch = run.memory.sample(300, 0.5)
    assert np.array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)  # never across a reset
    last = batch.observation[:, 0] == 6
    assert last.any()
    assert np.array_equal(batch.discount == 0, last if not truncates else np.zeros(300, bool))


def test_current_td_gives_each_transition_its_own_priority():
    run = trainer(initial="td", warmup_steps=30)  # nothing but insertion sets priorities
    list(run.train())
    first = run.memory.priorities(np.arange(30))
    maximal = trainer(warmup_steps=30)
    list(maximal.train())
    assert np.array_equal(maximal.memory.priorities(np.arange(30)), np.ones(30))
    assert len(np.unique(first)) > 10


@pytest.mark.parametrize("stop_at", [40, 92])
def test_a_moved_run_continues_bit_for_bit(tmp_path, stop_at):
    def run_to_end(run):
        return [event.row for event in events_of(IntervalLogged, run.train())]

    changes = {"checkpoint_period_frames": 4, "n_step": 3, "replay": "pser", "double_q": True}
    straight, stopped, resumed = (trainer(2, **changes) for _ in range(3))
    expected = run_to_end(straight)
    rows = []
    for event in stopped.train():
        if isinstance(event, IntervalLogged):
            rows.append(event.row)
        if isinstance(event, CheckpointDue) and event.frames >= stop_at:
            stopped.memory.save(tmp_path / "memory")
            resumed.set_state(stopped.get_state(), pser.ReplayMemory.load(tmp_path / "memory"))
            break
    rows += run_to_end(resumed)
    for row in (*rows, *expected):
        del row["frames_per_second"]
    assert rows == expected
    assert np.array_equal(resumed.agent.get_weights(), straight.agent.get_weights())
    resumed.memory.save(tmp_path / "a")
    straight.memory.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_checkpoint_of_an_earlier_version_continues(tmp_path):
    """It had no state of the replay rule, and measured every update."""
    run, resumed, expected = (trainer(2, budget_frames=400) for _ in range(3))
    for event in run.train():
        if event.frames >= 200:
            break
    run.memory.save(tmp_path / "memory")
    state = run.get_state()
    del state["replay"], state["interval"]["measured"]
    resumed.set_state(state, pser.ReplayMemory.load(tmp_path / "memory"))
    rows = [event.row for event in events_of(IntervalLogged, resumed.train())]
    assert rows[-1]["frames"] == 400
    list(expected.train())
    assert np.array_equal(resumed.agent.get_weights(), expected.agent.get_weights())


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("agent", {}),
        ("agent", {"online": None, "target": None, "optimizer": {}}),
        ("exploration", {"bit_generator": "Other"}),
        ("counters", {"colour": 1}),
        ("interval", {}),
        ("interval", 5),
    ],
)
def test_an_edited_state_is_refused_in_one_line(part, value):
    run, other = trainer(), trainer()
    list(run.train())
    with pytest.raises(PserError) as caught:
        other.set_state({**run.get_state(), part: value}, run.memory)
    assert "\n" not in str(caught.value)


def test_a_game_that_cannot_be_restored_starts_a_new_episode_in_memory(tmp_path):
    run, resumed = trainer(), trainer(game=CountingGame(1))
    for event in run.train():
        if event.frames >= 40:
            break
    run.memory.save(tmp_path / "memory")
    resumed.game.exact_state = False
    resumed.game.set_state = lambda state: resumed.game.reset()
    resumed.set_state(run.get_state(), pser.ReplayMemory.load(tmp_path / "memory"))
    list(resumed.train())
    batch = resumed.memory.sample(300, 0.5)
    assert np.array_equal(batch.next_observation[:, 0], batch.observation[:, 0] + 1)


@pytest.mark.parametrize("env", ["gym:CartPole-v1", "minatar:breakout", "atari:Pong"])
@pytest.mark.parametrize("replay", ["pser", "per", "uniform"])
def test_every_family_trains_with_every_strategy(env, replay):
    from pser.learner.presets import default_preset

    changes = {**SMALL, "num_envs": 2, "replay": replay, "max_episode_steps": 15, "batch_size": 4}
    per_step = 4 if env.startswith("atari") else 1
    changes |= {"budget_frames": 60 * per_step, "log_period_frames": 60 * per_step, "update_period_steps": 8}
    settings = preset_settings(default_preset(env), env).override(changes)
    run = Trainer(settings, training_game(settings), CPU)
    before = run.agent.get_weights()
    (row,) = [event.row for event in run.train() if isinstance(event, IntervalLogged)]
    run.game.close()
    assert row["steps"] == 60
    assert row["updates"] == 60 // 8 - 20 // 8
    assert np.isfinite(row["loss"])
    assert row["return_count"] >= 2
    assert not np.array_equal(run.agent.get_weights(), before)
    run.memory.check_invariants()


def test_a_loop_that_is_asked_to_stop_ends_between_two_steps_and_goes_on():
    one, other = trainer(), trainer()
    whole = list(one.train())
    seen = []
    for event in other.train():
        seen.append(event)
        other.stop_requested = isinstance(event, EpisodeFinished)
    *seen, stopped = seen
    assert isinstance(stopped, TrainingStopped)
    assert stopped.frames == other.frames < 120
    other.stop_requested = False
    seen += list(other.train())
    assert [type(event) for event in seen] == [type(event) for event in whole]
    np.testing.assert_array_equal(other.agent.get_weights(), one.agent.get_weights())


def test_a_finished_loop_can_be_extended():
    long = trainer(budget_frames=200)
    list(long.train())
    short = trainer()
    list(short.train())
    assert isinstance(list(short.train(until_frames=200))[-1], TrainingFinished)
    assert short.frames == long.frames == 200
    assert short.counters.updates == long.counters.updates
