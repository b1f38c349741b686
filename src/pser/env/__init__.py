"""Where steps come from. Importing this package registers its environments with Gymnasium."""

import gymnasium

gymnasium.register(
    id="pser/BlindCliffwalk-v0",
    entry_point="pser.env.blind_cliffwalk:BlindCliffwalk",
    kwargs={"states": 16},
)
