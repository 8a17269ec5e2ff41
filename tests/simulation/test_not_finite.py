"""What is not finite is taken, and seen, or refused, and the model stays finite: whole trials of each aggregation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from edgebed.algorithms.registry import AGGREGATIONS
from edgebed.core import records

SOMETIMES = """
import numpy as np
from edgebed.algorithms.compressor import Compressor, sent
from edgebed.algorithms.update import ModelUpdate

class Compression(Compressor):
    def compress(self, vector, memory, context):
        if context.step % 3 == 1:
            vector = np.where(np.arange(self.size) == 7, np.float32(np.inf), vector)
        return sent(ModelUpdate(self.size, None, vector)), memory
"""


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("choice", ["take", "refuse"])
def test_a_model_stays_finite_where_what_is_not_is_refused(
    simulate: Callable[..., Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, aggregation: str, choice: str
) -> None:
    """Every third push is infinite: with `refuse` each has a line, its worker goes on, and the accounts close."""
    name = f"sometimes_{aggregation.replace('-', '_')}_{choice}"
    (tmp_path / f"{name}.py").write_text(SOMETIMES)
    monkeypatch.syspath_prepend(tmp_path)
    outcome = simulate(
        {
            "name": "not-finite",
            "seed": 4,
            "task": {"data": "digits", "fraction": 0.2, "model": "small", "batch_size": 5, "gradient_time": "10ms"},
            "method": {
                "aggregation": aggregation,
                "compression": f"{name}:Compression",
                "local_work": AGGREGATIONS[aggregation].Aggregation.goes_with or "gradient-step",
            },
            "fleet": {"edge": {"count": 3}},
            "server": {"non_finite": choice},
            "evaluation": {"every": "40 updates"},
            "stop": {"updates": 40},
        }
    )
    refused = [record for _, record in outcome.of(records.Refused) if record.code == "not-finite"]
    updates = [record for _, record in outcome.of(records.Update)]

    assert outcome.ended.outcome == "completed"
    assert outcome.accounting.closes, outcome.accounting.problems
    if choice == "take":
        assert refused == []
        assert any(update.step % 3 == 1 for update in updates)
    else:
        assert {record.step % 3 for record in refused} == {1}
        assert {record.worker for record in refused} == {"edge-0", "edge-1", "edge-2"}
        assert all(update.step % 3 != 1 and np.isfinite(update.loss) for update in updates)
