"""Attack: functions that read files and replies, fuzzed by Hypothesis, which shrinks findings."""

from __future__ import annotations

from tests.hostile.campaign import fuzz_targets
from tests.hostile.campaign.trial import Attack, Trial

EXAMPLES = 300
FEW = 30
NAMES = tuple(fuzz_targets.TARGETS)


def attempt(trial: Trial) -> None:
    """Fuzz one target with a seed of the trial's own."""
    name = trial.name if trial.name in NAMES else trial.chance.choice(NAMES)
    examples = FEW if trial.is_short else EXAMPLES
    argv = (name, str(trial.chance.getrandbits(32)), str(examples))
    trial.run(*argv, module="tests.hostile.campaign.fuzz_targets", limit=60, allowed={0})
    trial.figures["inputs"] += examples


ATTACK = Attack("fuzz", "readers, fuzzed by Hypothesis", attempt, share=1, names=NAMES)
