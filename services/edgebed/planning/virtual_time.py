"""How long a gradient, and compressing a push, take in virtual time, and where these numbers come from."""

from edgebed.algorithms.registry import rule_of
from edgebed.core.plan import GRADIENT_TIME_S, Plan
from edgebed.core.quantities import number_text


def virtual_time_text(plan: Plan) -> str:
    """A sentence, e.g. `a gradient takes 5 ms (task.gradient_time's default, not measured for this model), ...`."""
    task, method = plan.nodes[0].task, plan.nodes[0].method
    if plan.is_profiled:
        return "layers take what they took where shards.profile was measured"
    is_default = task.gradient_time_s == GRADIENT_TIME_S
    why = "task.gradient_time's default, not measured for this model" if is_default else "the scenario's gradient_time"
    gradient = f"a gradient takes {number_text(1000 * task.gradient_time_s)} ms ({why})"
    if method.is_layerwise:
        beside = "" if rule_of(method).is_alone else "; what lies beside them takes time of its own at the same rate"
        return f"{gradient}, divided among the layers by counted operations{beside}"
    taken, why = "no time", "task.compression_time's default"
    if task.compression_time_s:
        taken, why = f"{number_text(1000 * task.compression_time_s)} ms", "the scenario's compression_time"
    return f"{gradient}, compressing a push {taken} ({why})"
