"""What a gradient, and compressing a push, take in virtual time, and where these numbers come from."""

from edgebed.observe.quantities import number_text
from edgebed.scenario.plan import Plan

GRADIENT = {
    "default": "task.gradient_time's default, not measured for this model",
    "scenario": "task.gradient_time, as the scenario says",
}
COMPRESSION = {"default": "task.compression_time's default", "scenario": "task.compression_time, as the scenario says"}


def virtual_time_text(plan: Plan) -> str:
    """For people, e.g. `a gradient takes 5 ms (task.gradient_time's default, not measured for this model), ...`."""
    task, method, source = plan.nodes[0].task, plan.nodes[0].method, plan.times_from
    if source.gradient == "profile":
        return "layers take what they took where shards.profile was measured"
    why = GRADIENT.get(source.gradient, "task.gradient_time")
    gradient = f"a gradient takes {number_text(1000 * task.gradient_time_s)} ms ({why})"
    if method.is_layerwise:
        return f"{gradient}, divided among the layers by counted operations"
    taken = f"{number_text(1000 * task.compression_time_s)} ms" if task.compression_time_s else "no time"
    why = COMPRESSION.get(source.compression, "task.compression_time")
    return f"{gradient}, compressing a push {taken} ({why})"
