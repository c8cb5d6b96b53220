"""Random fits of every estimator: no fault, whatever is thrown at them.

`PROXMARGIN_FUZZ_CASES` sets the number of cases an estimator of the long run;
``python -m tests.fuzz.test_fits N SEED`` prints counts of N cases by how they ended.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.cases import PARAMETERS, Case, cases
from tests.fuzz.outcomes import outcome

QUICK = 3
LONG = int(os.environ.get("PROXMARGIN_FUZZ_CASES", "60"))
every_estimator = pytest.mark.parametrize("name", PARAMETERS)
relaxed = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def check(case: Case) -> None:
    assert outcome(case).faults == ()


@every_estimator
def test_no_random_fit_has_a_fault(name: str) -> None:
    settings(max_examples=QUICK, derandomize=True, **relaxed)(given(cases(name))(check))()


@pytest.mark.slow
@every_estimator
def test_none_of_many_random_fits_has_a_fault(name: str) -> None:
    settings(max_examples=LONG, derandomize=True, **relaxed)(given(cases(name))(check))()


def survey(count: int, start: int) -> Counter[tuple[str, ...]]:
    """Counts of how cases ended; faults are printed with their cases."""
    counts: Counter[tuple[str, ...]] = Counter()

    def note(case: Case) -> None:
        try:
            found = outcome(case)
        except Exception as error:
            counts[case.estimator, f"raised {type(error).__name__}"] += 1
            print(f"{case}\n    raised {error!r}", flush=True)
            return
        counts[case.estimator, found.ending.name.lower()] += 1
        counts.update((case.estimator, f"compared: {name}") for name in found.compared)
        for fault in found.faults:
            counts[case.estimator, "fault"] += 1
            print(f"{case}\n    {fault}", flush=True)

    phases = (Phase.generate,)
    run: Any = settings(max_examples=count, database=None, phases=phases, **relaxed)
    seed(start)(run(given(cases())(note)))()
    return counts


if __name__ == "__main__":
    for (name, what), number in sorted(survey(int(sys.argv[1]), int(sys.argv[2])).items()):
        print(f"{name:26} {what:30} {number}")
