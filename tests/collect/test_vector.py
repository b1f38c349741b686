"""The recorder of vector environments, in every autoreset mode, against what the environments really did."""

import contextlib

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium import spaces  # noqa: E402
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import pser  # noqa: E402
from pser.collect import VectorRecorder  # noqa: E402

MODES = list(AutoresetMode)


class Diary(gymnasium.Env):
    """Observations tell environment, episode and step; episodes end as the plan says (length, terminated?)."""

    action_space = spaces.Discrete(1000)

    def __init__(self, number, plan, as_dict=False):
        self.number, self.plan, self.as_dict, self.episode = number, plan, as_dict, -1
        box = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.observation_space = (
            spaces.Dict({"where": box, "step": spaces.Discrete(10**6)}) if as_dict else box
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        length, terminates = self.plan[self.episode % len(self.plan)]
        end = self.time >= length
        return self.seen(), 10.0 * self.episode + self.time, end and terminates, end and not terminates, {}

    def seen(self):
        where = np.array([self.number, self.episode, self.time], np.float32)
        return {"where": where, "step": np.int64(self.time)} if self.as_dict else where


PLANS = [[(3, True), (1, False), (4, False)], [(2, False)], [(1, True), (5, True)]]


def envs(mode, plans=PLANS, as_dict=False, kind=SyncVectorEnv, **settings):
    makers = [lambda n=n, plan=plan: Diary(n, plan, as_dict) for n, plan in enumerate(plans)]
    return kind(makers, autoreset_mode=mode, **settings)


def memory_for(env, **settings):
    return pser.ReplayMemory(
        1000,
        env.single_observation_space,
        env.single_action_space,
        env.num_envs,
        seed=0,
        gamma=0.5,
        **settings,
    )


def expected(plans, calls, mode, lost=()):
    """Every transition of every environment, told from the plans alone: (env, episode, step, length, terminates).

    Without those of the calls that were lost.
    """
    story = []
    for number, plan in enumerate(plans):
        episode = time = 0
        for call in range(calls):
            length, terminates = plan[episode % len(plan)]
            if time == length:  # NEXT_STEP spends this call on the reset
                episode, time = episode + 1, 0
                continue
            if call not in lost:
                story.append((number, episode, time, length, terminates))
            time += 1
            if time == length and mode != AutoresetMode.NEXT_STEP:
                episode, time = episode + 1, 0
    return story


def assert_holds(memory, story, as_dict=False):
    batch = memory[np.arange(len(memory))]
    now, after = batch.observation, batch.next_observation
    if as_dict:
        np.testing.assert_array_equal(now["where"][:, 2], now["step"])
        np.testing.assert_array_equal(after["where"][:, 2], after["step"])
        now, after = now["where"], after["where"]
    order = np.lexsort((now[:, 2], now[:, 1], now[:, 0]))
    rows = np.array(sorted(story), float).reshape(-1, 5)
    np.testing.assert_array_equal(now[order], rows[:, :3])
    np.testing.assert_array_equal(after[order], rows[:, :3] + [0, 0, 1])
    np.testing.assert_array_equal(batch.reward[order], 10 * rows[:, 1] + rows[:, 2] + 1)
    ends = (rows[:, 2] + 1 == rows[:, 3]) & (rows[:, 4] == 1)
    np.testing.assert_array_equal(batch.terminated[order], ends)
    np.testing.assert_array_equal(batch.discount[order], np.where(ends, 0.0, 0.5))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_every_played_step_is_added_once_with_its_true_next_observation(mode, as_dict, copy):
    env = envs(mode, as_dict=as_dict, copy=copy)
    recorder = VectorRecorder(env, memory_for(env))
    recorder.reset(seed=0)
    for call in range(30):
        recorder.step(np.full(3, call))
    assert_holds(recorder.memory, expected(PLANS, 30, mode), as_dict)


LENGTHS = st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4)


@pytest.mark.parametrize("mode", MODES)
@given(plans=st.lists(LENGTHS, min_size=1, max_size=4), calls=st.integers(1, 25))
def test_any_episodes_are_recorded_as_they_were(mode, plans, calls):
    env = envs(mode, plans)
    recorder = VectorRecorder(env, memory_for(env))
    recorder.reset()
    for _ in range(calls):
        recorder.step(np.zeros(len(plans), int))
    assert_holds(recorder.memory, expected(plans, calls, mode))


@pytest.mark.parametrize("mode", MODES)
def test_environments_in_processes_of_their_own_are_recorded_too(mode):
    env = envs(mode, as_dict=True, kind=AsyncVectorEnv)
    try:
        recorder = VectorRecorder(env, memory_for(env))
        recorder.reset(seed=0)
        for _ in range(12):
            recorder.step(np.zeros(3, int))
        assert_holds(recorder.memory, expected(PLANS, 12, mode), as_dict=True)
    finally:
        env.close()


@pytest.mark.parametrize("mode", MODES)
def test_decay_follows_each_environments_own_episode(mode):
    env = envs(mode, [[(3, True)], [(100, False)]])
    recorder = VectorRecorder(
        env, memory_for(env, prioritization=pser.PSER(rho=0.5, window=9, eta=0.0, eps=0.0))
    )
    recorder.reset()
    ids = [recorder.step(np.zeros(2, int)) and recorder.ids.tolist() for _ in range(6)]
    memory = recorder.memory
    everything = np.arange(len(memory))
    memory.update_priorities(everything, np.full(len(memory), 1e-3))
    memory.update_priorities([ids[5][0]], [1.0])  # the first environment's second step of its second episode
    rows = memory[everything].observation
    raised = {tuple(row) for row, p in zip(rows, memory.priorities(everything), strict=True) if p > 1e-3}
    steps = range(2) if mode == AutoresetMode.NEXT_STEP else range(3)
    assert raised == {(0.0, 1.0, float(step)) for step in steps}


def test_priorities_are_given_for_the_environments_that_played():
    env = envs(AutoresetMode.NEXT_STEP, [[(1, True)], [(100, False)]])
    recorder = VectorRecorder(env, memory_for(env, prioritization=pser.PER(eps=0.0)))
    recorder.reset()
    recorder.step(np.zeros(2, int), priority=[5.0, 6.0])
    recorder.step(np.zeros(2, int), td_error=[7.0, -8.0])  # the first one is reset by it
    assert recorder.played.tolist() == [False, True]
    assert recorder.memory.priorities([0, 1, 2]).tolist() == [5.0, 6.0, 8.0]
    recorder.step(np.zeros(2, int))
    assert recorder.played.tolist() == [True, True]


def numbered(observation, action, reward, next_observation, terminated):
    """A number that no two transitions share."""
    (number, episode, step), after = observation.T, next_observation[:, 2]
    return number + 10 * episode + 100 * step + 1000 * after + 1e5 * action + 1e7 * terminated + reward / 1000


@pytest.mark.parametrize("mode", MODES)
@given(plans=st.lists(LENGTHS, min_size=1, max_size=4), calls=st.integers(1, 25))
def test_td_errors_are_asked_for_once_the_true_next_observation_is_known(mode, plans, calls):
    env = envs(mode, plans)
    recorder = VectorRecorder(env, memory_for(env, prioritization=pser.PER(eps=0.0)))
    recorder.reset()
    asked = []

    def td_error(*step):
        asked.append(len(step[2]))
        return -numbered(*step)

    for call in range(calls):
        recorder.step(np.full(len(plans), call % 10), td_error=td_error)
    memory = recorder.memory
    ids = np.arange(len(memory))
    rows = memory[ids]
    wanted = numbered(rows.observation, rows.action, rows.reward, rows.next_observation, rows.terminated)
    np.testing.assert_allclose(memory.priorities(ids), wanted, rtol=1e-6)
    assert sum(asked) == len(memory)
    assert 0 not in asked


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("mode", MODES)
@given(
    plans=st.lists(LENGTHS, min_size=1, max_size=4),
    calls=st.integers(1, 25),
    lost=st.sets(st.integers(0, 24), max_size=4),
)
def test_after_a_step_that_the_memory_refused_no_transition_leads_across_it(n_step, mode, plans, calls, lost):
    env = envs(mode, plans)
    recorder = VectorRecorder(env, memory_for(env, n_step=n_step))
    recorder.reset()
    for call in range(calls):
        if call in lost:
            with contextlib.suppress(pser.PserError):  # nothing is asked for where all are being reset
                recorder.step(np.zeros(len(plans), int), td_error=lambda *step: np.full(len(step[2]), np.nan))
        else:
            recorder.step(np.zeros(len(plans), int))
    memory = recorder.memory
    if n_step == 1:
        assert_holds(memory, expected(plans, calls, mode, lost))
    memory.end_episodes()
    rows = memory[np.arange(len(memory))]
    steps = rows.next_observation[:, 2] - rows.observation[:, 2]
    np.testing.assert_allclose(rows.discount, np.where(rows.terminated, 0.0, 0.5**steps))
    np.testing.assert_array_equal(rows.next_observation[:, :2], rows.observation[:, :2])
    before = memory.predecessors(np.arange(len(memory)), 1)[:, 0]
    followed = rows.observation[before[before >= 0]] + np.float32([0, 0, 1])
    np.testing.assert_array_equal(rows.observation[before >= 0], followed)


def test_a_step_that_only_resets_adds_nothing():
    env = envs(AutoresetMode.NEXT_STEP, [[(1, True)]])
    recorder = VectorRecorder(env, memory_for(env))
    recorder.reset()
    recorder.step(np.zeros(1, int))
    recorder.step(np.zeros(1, int))
    assert (len(recorder.memory), recorder.ids.size) == (1, 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_in_mid_episode_ends_it_in_the_memory(mode):
    env = envs(mode, [[(9, True)], [(2, True)]])
    recorder = VectorRecorder(env, memory_for(env, n_step=3))
    recorder.reset()
    for _ in range(2):
        recorder.step(np.zeros(2, int))
    assert len(recorder.memory) == 2
    recorder.reset()
    assert len(recorder.memory) == 4
    recorder.step(np.zeros(2, int))
    assert recorder.played.all()


def test_the_observation_returned_is_the_one_to_act_on():
    for mode in MODES:
        env = envs(mode, [[(1, True)], [(3, True)]])
        recorder = VectorRecorder(env, memory_for(env))
        recorder.reset()
        observation, _, terminated, _, _ = recorder.step(np.zeros(2, int))
        assert terminated.tolist() == [True, False]
        fresh = mode != AutoresetMode.NEXT_STEP
        assert observation.tolist() == [[0, 1, 0] if fresh else [0, 0, 1], [1, 0, 1]]
        np.testing.assert_array_equal(recorder.observation, observation)


def test_wrong_uses_say_what_to_do():
    env = envs(AutoresetMode.SAME_STEP)
    with pytest.raises(pser.PserError, match="make it for as many"):
        VectorRecorder(env, pser.ReplayMemory(10, pser.Array((3,)), num_envs=2))
    with pytest.raises(pser.PserError, match="call reset"):
        VectorRecorder(env, memory_for(env)).step(np.zeros(3, int))
    with pytest.raises(pser.PserError, match="give autoreset="):
        VectorRecorder(env, memory_for(env), autoreset="sometimes")
    with pytest.raises(pser.PserError, match=r"must be a vector environment.*gymnasium\.make_vec"):
        VectorRecorder(Diary(0, PLANS[0]), memory_for(env))
    env.metadata = {}
    with pytest.raises(pser.PserError, match="give autoreset="):
        VectorRecorder(env, memory_for(env))
    late = envs(AutoresetMode.NEXT_STEP)
    recorder = VectorRecorder(late, memory_for(late), autoreset="SAME_STEP")
    recorder.reset()
    with pytest.raises(pser.PserError, match="give the right autoreset= mode"):
        recorder.step(np.zeros(3, int))
