"""Where steps come from. Importing this package registers its environments with Gymnasium, if that is installed."""

try:
    import gymnasium
except ModuleNotFoundError:  # only some environments need it
    pass
else:
    gymnasium.register(
        id="pser/BlindCliffwalk-v0",
        entry_point="pser.env.blind_cliffwalk_gym:BlindCliffwalk",
        kwargs={"states": 16},
        max_episode_steps=1_000,  # never reached: an episode has at most as many steps as the chain has states
    )
    for _states in (6, 8, 10, 12, 14, 16):
        gymnasium.register(
            id=f"pser/OnlineCliffwalk{_states}-v0",
            entry_point="pser.env.online:online_cliffwalk",
            kwargs={"states": _states},
            max_episode_steps=_states + 1,
        )
    for _task in ("MiniGrid-Empty-8x8-v0", "MiniGrid-DoorKey-5x5-v0", "MiniGrid-FourRooms-v0"):
        gymnasium.register(
            id=f"pser/{_task}", entry_point="pser.env.online:minigrid_task", kwargs={"task": _task}
        )
