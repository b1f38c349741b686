"""The settings of the run that every library shares."""

import json
from pathlib import Path

BATCH = 32
LARGE_BATCH = 512
STREAMS = 64
ALPHA = 0.5
BETA = 0.5
EPS = 1e-4
ETA = 0.7
RHO = 0.4
GAMMA = 0.99
STACK = 4
FRAME = (84, 84)
SEQUENCES = 32
SEQUENCE_STEPS = 40
GAMES = ("Breakout", "Pong", "Seaquest", "MsPacman", "Enduro", "Riverraid", "BattleZone", "Zaxxon")
SCORES = Path(__file__).with_name("policies.json")
"""Points in a thousand steps, at random and by the policy kept in policies.npz, of the games that have one."""
PLAYED = (*GAMES, *(f"{game} trained" for game in json.loads(SCORES.read_text())))
"""Each game at random, and by its policy."""
COMPRESSED_BESIDE = ("Breakout", "Seaquest", "Riverraid")
"""Games whose frames another library compresses, too: few bytes, more, most."""
POOL = 64
"""Prepared TD-error vectors (and steps to add) that a case cycles through."""
