"""The model against the real kernel in virtual time, on a fixed set of 40 conditions.

The set (data/agreement.csv) was drawn evenly over families and congestion controls by `Draw(40, 20261121, …, (5, 10), "a")`, not chosen by
its results. Each condition runs with 12 seeds on the model and with 3 on the kernel, and with up to 12 on both until the interval of its
ln ratio is ± 0.2. The bounds, with both engines' intervals taken into account:

- the median of |ln ratio| is at most 0.04, as it stands: half of the conditions scatter so little that chance alone gives 0.002;
- the 90th percentile of |ln ratio| is at most 0.20, or, where the runs are too few to tell, at most what a perfect model with as many runs
  would exceed in one validation of forty;
- that second way must not be wide: chance alone gives a perfect model a 90th percentile of at most 0.20;
- beyond all scatter (every condition at the end of its interval nearest to zero) the 90th percentile is at most 0.05.
"""

import pytest

from conftest import ROOT
from tcpscape import engines
from tcpscape.validate import DivergenceSummary, ValidationOptions, prepare, validation
from tcpscape.validate.compare import groups
from tcpscape.words.divergence import summary_table

SET = ROOT / "tests" / "data" / "agreement.csv"
MEDIAN, P90, P90_UNEXPLAINED = 0.04, 0.20, 0.05


@pytest.mark.slow
def test_the_model_agrees_with_the_kernel_in_virtual_time(tmp_path, need_model):
    if reason := engines.REGISTRY["virtual"]().unavailable():
        pytest.skip(f"engine virtual: {reason}")
    ready = prepare(ValidationOptions(tmp_path, engines=("model", "virtual"), conditions=str(SET), seeds="12/3", precision=0.2, most=12))
    outcome = validation.run(ready.plan)
    said = summary_table(outcome.divergences).markdown()
    print(said)
    assert not outcome.left_out
    assert len(outcome.divergences) == 40
    assert len(groups(outcome.divergences, lambda c: c.family)) == 6
    s = DivergenceSummary.of(outcome.divergences)
    assert s.median <= MEDIAN, said
    assert s.p90 <= max(P90, s.chance_p90_high), said
    assert s.chance_p90 <= P90, said
    assert s.p90_low <= P90_UNEXPLAINED, said
