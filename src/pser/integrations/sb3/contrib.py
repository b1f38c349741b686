"""The algorithms of sb3-contrib that learn from a replay buffer, prioritized."""

from pser.integrations._shared import require_version

require_version("sb3-contrib", "2.9.2", "2.10")

from sb3_contrib import QRDQN as _QRDQN  # noqa: E402  # a missing package must first say what to install
from sb3_contrib import TQC as _TQC  # noqa: E402

from pser.integrations.sb3 import values  # noqa: E402
from pser.integrations.sb3.algorithms import Prioritized  # noqa: E402


class QRDQN(Prioritized, _QRDQN):
    """sb3-contrib's QR-DQN, prioritized."""

    values_of = values.of_qrdqn


class TQC(Prioritized, _TQC):
    """sb3-contrib's TQC, prioritized."""

    values_of = values.of_tqc
