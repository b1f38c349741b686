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
    )
