"""Does decay help more where it holds more of the sampling mass? All pairs of arms that differ in decay alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pser.analysis.markdown import table
from pser.studies.pooled import DECAY, Pair, strata_of
from pser.studies.results import SEED, Results, Tested, probe
from pser.studies.sources import SHARES, mean_share
from pser.studies.telling import gain_text, probability_text

WITH_AND_WITHOUT_DECAY: tuple[Pair, ...] = (
    *DECAY.pairs,
    ("insertion", "pser-currenttd", "per-eta-currenttd"),
    ("remedies", "pser-insert", "per-insert"),
    ("confirm", "pser-currenttd", "per-eta-currenttd"),
)
"""Those of the pooled question, and those declared later."""


@dataclass(frozen=True)
class Beside:
    """An arm with decay beside the same without."""

    pair: Pair
    share: float
    """Sampling mass that decay holds at the end of the arm's runs, mean over all of them."""
    tested: Tested
    """Described, not tested: nothing here is corrected for the others."""


def beside_each_other(
    found: Mapping[str, Results], pairs: Sequence[Pair] = WITH_AND_WITHOUT_DECAY
) -> list[Beside]:
    """The pairs that have runs, from the one in which decay holds most of the mass."""
    rng = np.random.default_rng(SEED)
    known = []
    for pair in pairs:
        study, arm, _ = pair
        tested = probe(DECAY.contrast, strata_of(found, [pair]), rng)
        share = mean_share(found[study], arm, SHARES["decay"]) if study in found else None
        if tested is not None and share is not None:
            known.append(Beside(pair, share, tested))
    return sorted(known, key=lambda one: -one.share)


LITTLE = 0.01
"""Below this share of the sampling mass decay cannot change much."""


def caveat(pairs: Sequence[Beside]) -> str:
    """In how many of the pairs behind the pooled question decay could hardly do anything; empty if in none."""
    asked = [one for one in pairs if one.pair in DECAY.pairs]
    little = [one for one in asked if one.share < LITTLE]
    if not little:
        return ""
    return (
        f"In {len(little)} of the {len(asked)} pairs of arms behind *{DECAY.asks}* decay holds under {LITTLE:.0%} of "
        "the sampling mass, and can hardly do anything; where it holds more, findings from training tell pair by pair."
    )


def mass_table(pairs: Sequence[Beside]) -> str:
    """A line a pair; empty without pairs."""
    rows = []
    for one in pairs:
        (study, arm, other), tested = one.pair, one.tested
        row = [f"`{study}`", f"`{arm}` against `{other}`", f"{one.share:.1%}", probability_text(tested)]
        rows.append([*row, gain_text(tested), f"{tested.wins} of {len(tested.games)}", str(tested.runs)])
    header = ["study", "arms", "mass from decay", "probability", "gain", "games ahead", "runs"]
    return table(header, rows) if rows else ""
