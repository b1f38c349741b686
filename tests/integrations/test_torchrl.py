"""The TorchRL adapter, against the library itself."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torchrl")

import torch
from tensordict import TensorDict
from torchrl.data import (
    LazyMemmapStorage,
    LazyTensorStorage,
    ListStorage,
    ReplayBuffer,
    TensorDictMaxValueWriter,
    TensorDictReplayBuffer,
    TensorStorage,
)
from torchrl.data.replay_buffers.scheduler import LinearScheduler

import pser
from integrations.bare import Diary, assert_same_priorities, retained
from pser.integrations import torchrl as adapter
from pser.integrations.torchrl import PSERSampler

RULE = pser.PSER(alpha=0.6, rho=0.5, window=4, eta=0.3)
SIMPLE = pser.PSER(rho=0.5, window=4, eta=0.0, eps=0.0)


def sampler(rule=RULE, td_errors="plain", **settings):
    return PSERSampler(rule, td_errors=td_errors, seed=0, **settings)


def buffer(size=40, ndim=1, kind=TensorDictReplayBuffer, storage=LazyTensorStorage, **settings):
    return kind(storage=storage(size, ndim=ndim), sampler=sampler(**settings), batch_size=16)


def steps(done, truncated=None, start=0, **more):
    """Data as collectors give it, shape (steps,) or (environments, steps); numbers tell where they belong."""
    terminated = torch.as_tensor(np.array(done, bool))
    cut = torch.zeros_like(terminated) if truncated is None else torch.as_tensor(np.array(truncated, bool))
    time = torch.arange(start, start + terminated.shape[-1])
    place = time if terminated.ndim == 1 else 10 * time + torch.arange(terminated.shape[0])[:, None]
    after = {"terminated": terminated, "truncated": cut, "done": terminated | cut, "reward": place.double()}
    after = {key: value.unsqueeze(-1) for key, value in after.items()}
    return TensorDict({"place": place, "next": after, **more}, batch_size=terminated.shape)


def all_priorities(memory):
    index = memory.sampler.index
    return index.priority(retained(index))


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_decay_stops_where_an_episode_was(end):
    memory = buffer(ndim=2, rule=SIMPLE)
    flags = np.zeros((2, 6), bool)
    flags[0, 2] = True
    data = steps(flags) if end == "terminated" else steps(np.zeros_like(flags), flags)
    memory.extend(data)
    memory.sample()
    memory.update_priority(torch.cartesian_prod(torch.arange(6), torch.arange(2)), torch.full((12,), 1e-3))
    memory.update_priority(torch.tensor([[4, 0], [4, 1]]), torch.tensor([0.8, 0.8]))
    ended, running = all_priorities(memory).reshape(6, 2).T
    np.testing.assert_allclose(ended, [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3], rtol=1e-6)
    np.testing.assert_allclose(running, [0.05, 0.1, 0.2, 0.4, 0.8, 1e-3], rtol=1e-6)


def drive(memory, diary_of, *, envs, rounds, in_one_dimension):
    """Collect, sample, update in turn; returns the diary and the episode starts of every row, told from the data."""
    rng = np.random.default_rng(3)
    starts, ended, diary = [], np.ones(envs, bool), None
    for number in range(rounds):
        length = int(rng.integers(2, 9))  # TorchRL 0.14 itself fails at one step of shape (environments, 1)
        flags, cuts = rng.random((2, envs, length)) < 0.1
        data = steps(flags, cuts, start=len(starts))
        if in_one_dimension:  # the environments' steps alternate
            data = data.transpose(0, 1).reshape(-1)
        memory.extend(data)
        firsts = []
        for time in range(length):
            firsts.append(ended)
            ended = flags[:, time] | cuts[:, time]
        starts.append((np.concatenate(firsts), np.tile(np.arange(envs), length)))
        if number == 0:
            memory.sample()  # the index exists from here on
            diary = Diary(diary_of(memory))
            continue
        batch = memory.sample()
        memory.update_priority(batch["index"], torch.as_tensor(rng.normal(size=16) * 3))
    return diary, starts


@pytest.mark.parametrize("in_one_dimension", [False, True])
def test_priorities_equal_those_of_a_bare_index_fed_the_same_transitions(in_one_dimension):
    memory = buffer(
        size=60, ndim=1 if in_one_dimension else 2, num_streams=3 if in_one_dimension else 1, beta=0.7
    )
    diary, starts = drive(
        memory, lambda memory: memory.sampler.index, envs=3, rounds=60, in_one_dimension=in_one_dimension
    )
    seeded = memory.sampler.index
    bare = pser.PriorityIndex(60, RULE, num_streams=3, seed=0)
    bare.append(*starts[0][:1], stream=starts[0][1])
    bare.sample(16, 0.7)  # the very first draw, before the diary was open
    index = diary.replayed_on(bare, starts[1:])
    assert diary.updates == 59
    assert index.next_id > 2 * 60
    assert_same_priorities(seeded, index)


def test_a_batch_holds_what_its_indices_name_also_after_wrapping():
    memory = buffer(size=21, ndim=2)
    for start in range(0, 20, 5):
        memory.extend(steps(np.zeros((3, 5), bool), start=start))
        batch, info = memory.sample(return_info=True)
    time, env = batch["index"].unbind(-1)
    place = batch["place"]
    assert set((place // 10).tolist()) <= set(range(13, 20))
    torch.testing.assert_close((place // 10) % 7, time)
    torch.testing.assert_close(place % 10, env)
    torch.testing.assert_close(batch["priority_weight"], info["priority_weight"])
    assert (info["priority_weight"] == 1.0).all()


def test_squared_td_errors_are_rooted():
    memory = buffer(rule=SIMPLE, td_errors="squared")
    memory.extend(steps([True] * 4))
    memory.sample()
    memory.update_priority(torch.arange(4), torch.tensor([0.0, 1.0, 4.0, 9.0]))
    np.testing.assert_array_equal(all_priorities(memory), [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(pser.PserError, match="use td_errors='plain'"):
        memory.update_priority(torch.tensor([0]), torch.tensor([-1.0]))


def test_update_tensordict_priority_reaches_the_index():
    memory = buffer(rule=SIMPLE)
    memory.extend(steps([True] * 16))
    batch = memory.sample()
    batch["td_error"] = batch["place"].double().unsqueeze(-1)
    memory.update_tensordict_priority(batch)
    index = memory.sampler.index
    slots = batch["index"].numpy()
    np.testing.assert_array_equal(index.priority(slots), slots)


def test_data_with_a_td_error_is_inserted_with_it_and_decays_at_once():
    memory = buffer(rule=pser.PSER(rho=0.5, window=4, eta=0.9, eps=0.0), size=8)
    given = torch.tensor([0.0, 0.0, 0.0, 4.0]).unsqueeze(-1)
    memory.extend(steps([False] * 4, td_error=given))
    bare = pser.PriorityIndex(8, pser.PSER(rho=0.5, window=4, eta=0.9, eps=0.0))
    bare.append([True, False, False, False], stream=[0] * 4, td_error=given[:, 0].numpy())
    assert_same_priorities(memory.sampler.index, bare)
    np.testing.assert_array_equal(all_priorities(memory), [0.5, 1.0, 2.0, 4.0])


def test_single_additions_without_a_priority_take_the_largest():
    memory = buffer(size=5)
    for time in range(7):
        memory.add(steps([time == 2], start=time)[0])
        memory.sample()
        if time == 3:
            memory.update_priority(torch.tensor([3]), torch.tensor([7.0]))
    index = memory.sampler.index
    assert index.next_id == 7
    assert index.priority([4, 5, 6]).tolist() == [index.max_priority] * 3
    assert index.max_priority == 7.0 + RULE.eps


def test_sequences_end_where_a_collector_starts_another_trajectory():
    memory = buffer(rule=SIMPLE)
    names = torch.tensor([5, 5, 5, 8, 8, 8])
    memory.extend(steps([False] * 6, collector=TensorDict({"traj_ids": names}, [6])))
    memory.sample()
    memory.update_priority(torch.arange(6), torch.full((6,), 1e-3))
    memory.update_priority(torch.tensor([4]), torch.tensor([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3], rtol=1e-6)


def test_more_data_than_the_storage_holds_may_come_before_the_first_sample():
    memory = buffer(size=10, rule=SIMPLE)
    for start in range(0, 24, 6):
        memory.extend(steps([time % 4 == 3 for time in range(start, start + 6)], start=start))
    memory.sample()
    index = memory.sampler.index
    assert (index.oldest_id, index.next_id) == (14, 24)
    index.update(np.arange(14, 24), np.full(10, 1e-3))
    index.update([18], [0.8])
    np.testing.assert_allclose(index.priority([14, 15, 16, 17, 18]), [1e-3, 1e-3, 0.2, 0.4, 0.8])


def test_data_that_was_there_before_is_taken_in():
    data = steps([time == 2 for time in range(6)])
    memory = TensorDictReplayBuffer(storage=TensorStorage(data), sampler=sampler(SIMPLE), batch_size=4)
    memory.sample()
    memory.update_priority(torch.arange(6), torch.full((6,), 1e-3))
    memory.update_priority(torch.tensor([4]), torch.tensor([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 1e-3, 1e-3, 0.4, 0.8, 1e-3], rtol=1e-6)


def filled(**settings):
    memory = buffer(size=30, ndim=2, **settings)
    rng = np.random.default_rng(0)
    for start in range(0, 15, 3):
        memory.extend(steps(rng.random((3, 3)) < 0.2, start=start))
        batch = memory.sample()
        memory.update_priority(batch["index"], torch.as_tensor(rng.normal(size=16)))
    memory.extend(steps(rng.random((3, 2)) < 0.2, start=15))  # not yet seen by the sampler when it is saved
    return memory


# TorchRL's advice on loading into an empty storage; it loads all the same.
@pytest.mark.filterwarnings("ignore:Loading the storage on an uninitialized TensorDict:UserWarning")
@pytest.mark.parametrize("storage", [LazyTensorStorage, LazyMemmapStorage])
@pytest.mark.parametrize("how", ["dumps", "state_dict"])
def test_a_saved_buffer_goes_on_bit_for_bit(tmp_path, how, storage):
    memory, again = filled(storage=storage), buffer(size=30, ndim=2, storage=storage)
    if how == "dumps":
        memory.dumps(tmp_path / "buffer")
        again.loads(tmp_path / "buffer")
    else:
        torch.save(memory.state_dict()["_sampler"], tmp_path / "sampler.pt")
        again.load_state_dict(
            {**memory.state_dict(), "_sampler": torch.load(tmp_path / "sampler.pt", weights_only=True)}
        )
    for start in (17, 19):
        one, other = memory.sample(), again.sample()
        torch.testing.assert_close(one["index"], other["index"], rtol=0, atol=0)
        torch.testing.assert_close(one["place"], other["place"], rtol=0, atol=0)
        for each in (memory, again):
            each.update_priority(one["index"], one["place"].double())
            each.extend(steps(np.zeros((3, 2), bool), start=start))
    assert_same_priorities(memory.sampler.index, again.sampler.index)


def test_emptying_the_buffer_forgets_all():
    memory = filled()
    memory.empty()
    memory.extend(steps(np.zeros((3, 2), bool)))
    memory.sample()
    assert memory.sampler.index.next_id == 6
    assert memory.sampler.index.max_priority == 1.0


def test_a_saved_sampler_of_another_size_is_refused(tmp_path):
    filled().sampler.dumps(tmp_path / "sampler")
    other = buffer(size=60, ndim=2)
    other.extend(steps(np.zeros((3, 2), bool)))
    other.sample()
    before = other.sampler.index
    with pytest.raises(pser.PserError, match="make the storage with the saved max_size"):
        other.sampler.loads(tmp_path / "sampler")
    assert other.sampler.index is before


def test_a_saved_sampler_with_other_settings_is_refused(tmp_path):
    filled().sampler.dumps(tmp_path / "sampler")
    with pytest.raises(pser.PserError, match="make it with the saved settings"):
        buffer(rule=pser.PER()).sampler.loads(tmp_path / "sampler")


def test_a_sampler_for_another_storage_is_refused():
    memory, other = filled(), buffer(size=60, ndim=2)
    other.extend(steps(np.zeros((3, 2), bool)))
    with pytest.raises(pser.PserError, match="make both with the same sizes"):
        memory.sampler.sample(other.storage, 4)


def test_a_sampler_that_came_later_than_the_data_is_refused():
    memory = ReplayBuffer(storage=LazyTensorStorage(10), batch_size=4)
    memory.extend(steps([False] * 4))
    memory.set_sampler(sampler())
    with pytest.raises(pser.PserError, match="give the sampler when the ReplayBuffer is made"):
        memory.sample()


def test_a_missing_prioritization_says_how_to_give_one():
    with pytest.raises(pser.PserError, match=r"give PSERSampler\(pser.PSER\(\), ...\)"):
        PSERSampler(td_errors="plain")


def test_how_td_errors_are_given_must_be_said():
    with pytest.raises(pser.PserError, match="'squared' fits update_tensordict_priority"):
        PSERSampler(pser.PSER())


def own_episodes(memory, data):
    """Every row an episode of its own: said, and then nothing decays."""
    memory.extend(data)
    with pytest.warns(UserWarning, match="every row counts as an episode"):
        memory.sample()
    memory.update_priority(torch.arange(4), torch.full((4,), 1e-3))
    memory.update_priority(torch.tensor([3]), torch.tensor([0.8]))
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 1e-3, 1e-3, 0.8], rtol=1e-6)
    return memory


def test_rows_without_done_flags_are_episodes_of_their_own():
    own_episodes(buffer(rule=SIMPLE), TensorDict({"place": torch.arange(4)}, [4]))


def test_rows_that_are_no_tensordicts_are_episodes_of_their_own():
    for storage, data in [(ListStorage(10), ["a", "b", "c", "d"]), (LazyTensorStorage(10), torch.arange(4))]:
        memory = ReplayBuffer(
            storage=storage, sampler=sampler(SIMPLE), batch_size=2, collate_fn=lambda rows: rows
        )
        own_episodes(memory, data)


def test_trajectories_as_rows_are_episodes_of_their_own():
    memory = own_episodes(buffer(rule=SIMPLE), steps(np.zeros((4, 6), bool)))
    batch = memory.sample()
    assert batch["place"].shape == (16, 6)
    batch["td_error"] = batch["place"].double().unsqueeze(-1)
    memory.update_tensordict_priority(
        batch
    )  # TorchRL reduces a trajectory's errors by the sampler's `reduction`
    slots = batch["index"][:, 0].numpy()
    np.testing.assert_array_equal(memory.sampler.index.priority(slots), 50 + slots)


def test_nothing_is_said_where_nothing_would_decay_anyway():
    memory = buffer(rule=pser.PER())
    memory.extend(TensorDict({"place": torch.arange(4)}, [4]))
    memory.sample()


def test_data_written_through_another_buffer_of_the_same_storage_is_taken_in():
    storage = LazyTensorStorage(6)
    memory = ReplayBuffer(storage=storage, sampler=sampler(SIMPLE), batch_size=4)
    writer = ReplayBuffer(storage=storage, batch_size=4)
    writer.extend(steps([False, True, False]))
    memory.sample()
    assert memory.sampler.index.next_id == 3
    writer.extend(steps([False] * 2, start=3))
    writer.add(steps([False], start=5)[0])
    writer.add(steps([False], start=6)[0])
    memory.sample()
    index = memory.sampler.index
    assert (index.oldest_id, index.next_id) == (1, 7)
    index.update(np.arange(1, 7), np.full(6, 1e-3))
    index.update([4], [0.8])
    np.testing.assert_allclose(all_priorities(memory), [1e-3, 0.2, 0.4, 0.8, 1e-3, 1e-3])


def test_what_the_buffer_itself_writes_is_counted_once():
    memory = buffer(size=6, kind=ReplayBuffer)
    memory.extend(steps([False] * 4))
    memory.add(steps([False], start=4)[0])
    memory.sample()
    assert memory.sampler.index.next_id == 5


@pytest.mark.parametrize("rule", [pser.PSER(alpha=0.6), pser.PER(alpha=0.6), pser.PER(variant="rank")])
def test_alpha_can_be_set_and_scheduled(rule):
    memory = buffer(rule=rule)
    memory.extend(steps([False] * 8))
    memory.sample()
    memory.update_priority(torch.arange(8), torch.arange(8).double())
    index, raw = memory.sampler.index, all_priorities(memory)
    scheduler = LinearScheduler(memory, "alpha", final_value=0.2, num_steps=4)
    for _ in range(4):
        scheduler.step()
    assert memory.sampler.alpha == pytest.approx(0.2)
    np.testing.assert_array_equal(all_priorities(memory), raw)
    again = pser.PriorityIndex(40, replace(rule, alpha=memory.sampler.alpha))
    again.append([True] * 8, raw, stream=[0] * 8)
    ids = np.arange(8)
    np.testing.assert_allclose(index.probabilities(ids), again.probabilities(ids), rtol=1e-12)
    index.check_invariants()
    with pytest.raises(pser.PserError, match="alpha must be from 0 to 1"):
        memory.sampler.alpha = -1
    with pytest.raises(pser.PserError, match=r"pser\.Uniform has no alpha"):
        buffer(rule=pser.Uniform()).sampler.alpha = 0.5


def test_a_sampler_with_another_alpha_goes_on_from_a_saved_one(tmp_path):
    memory, again = filled(), buffer(size=30, ndim=2)
    memory.sampler.alpha = 0.3
    memory.sampler.dumps(tmp_path / "sampler")
    again.sampler.loads(tmp_path / "sampler")
    assert again.sampler.alpha == 0.3


def test_beta_can_be_scheduled():
    memory = buffer()
    scheduler = LinearScheduler(memory, "beta", final_value=1.0, num_steps=2)
    scheduler.step()
    assert memory.sampler.beta == 0.75


def test_broken_contracts_raise_runtime_errors():
    memory = buffer()
    assert memory.sampler.device == torch.device("cpu")
    with pytest.raises(RuntimeError, match="empty storage"):
        memory.sample()
    memory.extend(steps([False] * 4))
    with pytest.raises(RuntimeError, match="needs the storage"):
        memory.sampler.update_priority(torch.tensor([0]), 1.0)


def test_a_sampler_is_not_sent_to_another_process(monkeypatch):
    monkeypatch.setattr(adapter, "get_spawning_popen", lambda: object())
    with pytest.raises(RuntimeError, match="between processes"):
        pickle.dumps(sampler())


def test_slices_name_slots():
    memory = buffer(rule=SIMPLE)
    memory.extend(steps([True] * 4))
    memory.sampler._written[-1] = slice(0, 4)  # as a writer of one's own may say it
    memory.sample()
    memory.update_priority(torch.arange(4), torch.tensor([1.0, 2.0, 3.0, 4.0]))
    memory.sampler.update_priority(slice(0, 2), torch.tensor([5.0, 6.0]), storage=memory.storage)
    assert all_priorities(memory).tolist() == [5.0, 6.0, 3.0, 4.0]


def test_a_writer_that_skips_about_is_refused():
    memory = TensorDictReplayBuffer(
        storage=LazyTensorStorage(4),
        sampler=sampler(),
        writer=TensorDictMaxValueWriter(rank_key="rank"),
        batch_size=2,
    )
    memory.extend(steps([False] * 4, rank=torch.tensor([3.0, 1.0, 4.0, 2.0])))
    memory.sample()
    memory.extend(steps([False], rank=torch.tensor([9.0])))
    with pytest.raises(pser.PserError, match="use RoundRobinWriter"):
        memory.sample()


def test_an_index_of_minus_one_means_not_stored_and_is_skipped():
    memory = buffer(size=10, rule=SIMPLE)
    memory.extend(steps([True] * 10))
    memory.sample()
    memory.update_priority(torch.tensor([3, -1]), torch.tensor([5.0, 7.0]))
    assert all_priorities(memory).tolist() == [1.0] * 3 + [5.0] + [1.0] * 6
    grid = buffer(size=10, ndim=2, rule=SIMPLE)
    grid.extend(steps(np.ones((2, 5), bool)))
    grid.sample()
    grid.update_priority(torch.tensor([[1, 0], [-1, -1]]), torch.tensor([5.0, 7.0]))
    assert all_priorities(grid).tolist() == [1.0] * 2 + [5.0] + [1.0] * 7


@pytest.mark.parametrize("slot", [10, 12, -2, -10])
def test_an_index_out_of_range_is_refused_and_nothing_changes(slot):
    memory = buffer(size=10, rule=SIMPLE)
    memory.extend(steps([True] * 25))
    memory.sample()
    with pytest.raises(RuntimeError, match=rf"from 0 to 9, got {slot}: pass the indices"):
        memory.update_priority(torch.tensor([3, slot]), torch.tensor([5.0, 7.0]))
    assert all_priorities(memory).tolist() == [1.0] * 10


@pytest.mark.parametrize("place", [[5, 0], [0, 2], [-1, 1], [1, -1]])
def test_an_index_outside_the_storage_and_its_environments_is_refused(place):
    memory = buffer(size=10, ndim=2, rule=SIMPLE)
    memory.extend(steps(np.ones((2, 5), bool)))
    memory.sample()
    with pytest.raises(RuntimeError, match="pass the indices"):
        memory.update_priority(torch.tensor([[1, 0], place]), torch.tensor([5.0, 7.0]))
    assert all_priorities(memory).tolist() == [1.0] * 10


def test_a_slot_that_was_never_written_is_refused():
    memory = buffer(size=10, rule=SIMPLE)
    memory.extend(steps([True] * 4))
    memory.sample()
    with pytest.raises(pser.PserError, match="from 0 to 3, got 7"):
        memory.update_priority(torch.tensor([7]), torch.tensor([5.0]))


def test_as_many_priorities_as_indices_are_asked_for():
    memory = buffer(size=10, rule=SIMPLE)
    memory.extend(steps([True] * 4))
    memory.sample()
    with pytest.raises(RuntimeError, match="one for each of the 2 indices, got 3"):
        memory.update_priority(torch.tensor([0, 1]), torch.tensor([5.0, 6.0, 7.0]))
    memory.update_priority(torch.tensor([0, 1]), 5.0)
    assert all_priorities(memory).tolist() == [5.0, 5.0, 1.0, 1.0]


def test_nan_td_errors_are_refused():
    memory = buffer()
    memory.extend(steps([False] * 4))
    memory.sample()
    with pytest.raises(pser.PserError, match="finite"):
        memory.update_priority(torch.tensor([0]), torch.tensor([float("nan")]))


def test_data_with_a_nan_td_error_is_refused_and_then_counts_as_data_without_one():
    memory = buffer(kind=ReplayBuffer)
    index = memory.extend(steps([False, True, False]))
    with pytest.raises(pser.PserError, match="finite"):
        memory.update_priority(index, torch.tensor([1.0, float("nan"), 1.0]))
    memory.sample()
    assert all_priorities(memory).tolist() == [1.0, 1.0, 1.0]
    assert memory.sampler._ended.tolist() == [False]


def test_a_training_run_with_four_environments_completes():
    with warnings.catch_warnings():
        # TorchRL 0.14 warns about its own classes while it is imported.
        warnings.filterwarnings(
            "ignore", message="Creating VanillaWeightUpdater", category=DeprecationWarning
        )
        collectors = pytest.importorskip("torchrl.collectors")
    from torchrl.envs import GymEnv, SerialEnv
    from torchrl.modules import MLP, QValueActor
    from torchrl.objectives import DQNLoss

    torch.manual_seed(0)
    kwargs = {"env_name": "CartPole-v1", "categorical_action_encoding": True}
    env = SerialEnv(4, GymEnv, create_env_kwargs=kwargs)
    network = MLP(in_features=4, out_features=2, num_cells=[16])
    actor = QValueActor(network, spec=GymEnv(**kwargs).action_spec, action_space="categorical")
    rule = pser.PSER(rho=0.95, window=5, eta=0.0)  # strong decay, to be seen among so few updates
    memory = buffer(size=1000, ndim=2, td_errors="squared", rule=rule)
    loss = DQNLoss(actor, delay_value=False)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    updates = 0
    options = {"frames_per_batch": 200, "total_frames": 2000, "auto_register_policy_transforms": True}
    for data in collectors.Collector(env, actor, **options):
        memory.extend(data)
        for _ in range(15):
            batch = memory.sample()
            optimizer.zero_grad()
            loss(batch)["loss"].backward()
            optimizer.step()
            memory.update_tensordict_priority(batch)
            updates += 1
    index = memory.sampler.index
    index.check_invariants()
    assert index.next_id == 2000
    assert index.stats()["updates_applied"] == updates * 16
    assert index.stats()["decayed_mass_seen"] > 0.0
    # The last batch's priorities are the roots of what the loss wrote, unless a later step's decay holds more.
    ids = 1000 + batch["index"][:, 0].numpy() * 4 + batch["index"][:, 1].numpy()
    assert (index.priority(ids) >= batch["td_error"][:, 0].sqrt().numpy()).all()
