"""Records what Google's dp-accounting says of Gaussian mechanisms, for ``test_privacy_budget.py``.

The library is no dependency, not even of the tests: it needs an older ``attrs`` than other packages
do. So its values are recorded, in an environment of its own, with

    pip install dp-accounting==0.6.0 && python tests/support/accounting_reference.py > tests/support/accounting.json
"""

import json
import sys
from importlib.metadata import version

from dp_accounting import GaussianDpEvent, pld
from dp_accounting.pld.accountant import get_smallest_gaussian_noise
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

EPSILONS = (0.01, 0.1, 1.0, 3.0, 8.0, 30.0)
DELTAS = (1e-12, 1e-7, 1e-5, 1e-2)
TOURS = (1, 40)
MUS = (0.05, 0.3, 1.0, 4.0)
COMPOSED = ((0.2, 0.2), (0.1, 0.3, 0.5), (1.0, 0.7))


def composed_epsilon(mus: tuple[float, ...], delta: float) -> float:
    """Of mechanisms one after the other, by the distribution of the privacy loss: an upper bound,
    close to it."""
    accountant = pld.PLDAccountant()
    for mu in mus:
        accountant.compose(GaussianDpEvent(1 / mu))
    return float(accountant.get_epsilon(delta))


found = {
    "library": f"dp-accounting {version('dp-accounting')}",
    "noise": [
        [
            epsilon,
            delta,
            tours,
            get_smallest_gaussian_noise(DifferentialPrivacyParameters(epsilon, delta), tours),
        ]
        for epsilon in EPSILONS
        for delta in DELTAS
        for tours in TOURS
    ],
    "delta": [
        [epsilon, mu, float(GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon))]
        for epsilon in EPSILONS
        for mu in MUS
    ],
    "composed": [
        [list(mus), delta, composed_epsilon(mus, delta)]
        for mus in COMPOSED
        for delta in (1e-7, 1e-5)
    ],
}
rows = {
    name: [json.dumps(row) for row in value]
    for name, value in found.items()
    if isinstance(value, list)
}
tables = [f'"{name}": [\n' + ",\n".join(lines) + "\n]" for name, lines in rows.items()]
sys.stdout.write(f'{{"library": "{found["library"]}",\n' + ",\n".join(tables) + "}\n")
