"""The quantities of the training records that are drawn over time."""

from dataclasses import dataclass

import numpy as np

from pser.analysis.report.runs import Run, Series


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A quantity of the training records that is drawn over time."""

    key: str
    title: str
    unit: str
    """What its axis counts."""
    help: str


METRICS = (
    Metric(
        key="effective_share",
        title="effective sample size, share of memory",
        unit="share of the memory",
        help="1 / (N·Σ P²): 1 is uniform sampling, near 0 a few transitions take all",
    ),
    Metric(
        key="memory.decayed_share",
        title="share of decayed mass",
        unit="share of the sampling mass",
        help="share of the sampling mass that backward decay put there; 0 for PER and uniform",
    ),
    Metric(
        key="memory.collapse",
        title="collapse meter",
        unit="share of the decayed mass",
        help="decayed mass lost again when its transition was sampled: 0 none, 1 all (the paper's priority "
        "collapse)",
    ),
    Metric(
        key="memory.mass_from_insertion",
        title="mass from insertion",
        unit="share of the sampling mass",
        help="share of the sampling mass of transitions never replayed",
    ),
    Metric(
        key="memory.mass_from_retention",
        title="mass from retention",
        unit="share of the sampling mass",
        help="share of the sampling mass that η keeps against a smaller TD error",
    ),
    Metric(
        key="memory.mass_from_td_error",
        title="mass from TD errors",
        unit="share of the sampling mass",
        help="share of the sampling mass that the transitions' own TD errors set",
    ),
    Metric(
        key="memory.mass_from_decay",
        title="mass from decay",
        unit="share of the sampling mass",
        help="share of the sampling mass that backward decay set last",
    ),
    Metric(
        key="memory.never_replayed_share",
        title="never replayed",
        unit="share of the memory",
        help="share of stored transitions",
    ),
    Metric(
        key="memory.age_mean",
        title="mean age",
        unit="transitions",
        help="in transitions, weighted by sampling mass",
    ),
    Metric(
        key="memory.max_priority",
        title="largest priority ever",
        unit="raw priority",
        help="what MaxPrio insertion uses",
    ),
    Metric(key="loss", title="loss", unit="loss", help="mean weighted loss of the updates"),
    Metric(key="q_mean", title="mean Q", unit="return", help="of the sampled state-actions"),
    Metric(key="td_abs_mean", title="mean |TD error|", unit="return", help="of the sampled transitions"),
    Metric(
        key="frames_per_second",
        title="frames per second",
        unit="frames / s",
        help="of training, this machine",
    ),
)
"""The first three are the priority diagnostics; the others can be chosen."""

MASS_SOURCES = tuple(metric for metric in METRICS if metric.key.startswith("memory.mass_from_"))
"""The four shares of the sampling mass by what last set the priorities; they sum to 1."""

DIAGNOSTICS = 3
"""How many of METRICS are always shown."""


def metric_series(run: Run, key: str) -> Series:
    """A metric of the training records; `effective_share` is the effective sample size over the size."""
    if key != "effective_share":
        return run.metric_series(key)
    effective, size = run.metric_series("memory.effective_sample_size"), run.metric_series("memory.size")
    if len(effective) != len(size):
        return Series(np.empty(0), np.empty(0))
    filled = size.values > 0
    return Series(effective.frames[filled], effective.values[filled] / size.values[filled])
