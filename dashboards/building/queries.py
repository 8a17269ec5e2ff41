"""PromQL that several panels share. A query names run and trial, since one Prometheus sees many of both.

Where a query is given no other place, it asks for the run and the trials that the dashboard's variables choose.
"""

HERE = 'run="$run",trial=~"$trial"'
CHOSEN = HERE + ',device_class=~"$device_class"'
"""Of the chosen classes alone; the class of a node that is no worker is its role."""
ON_HOST = HERE + ',host=~"$host"'
"""On the chosen hosts alone; with one alone nothing has that label, and all is chosen."""
WORKERS = HERE + ',device_class!~"server|evaluator|store|modules"'

HEADLINE = "edgebed_model_headline"
"""What results are told by: `measure` is its name and unit, `split` the part of the data."""
OF_HEADLINE = "trial, measure, split"

BY_TRIAL = "{{trial}}"
BY_MEASURE = "{{trial}}: {{split}} {{measure}}"
BY_CLASS = "{{trial}} {{device_class}}"
BY_HOST = "{{trial}} {{host}}"
BY_NODE = "{{trial}} {{node}}"
CLASS = "trial, device_class"
NODE = "trial, device_class, node"
HOST = "trial, host"

A_MINUTE = "1m"
"""Over which a rate is taken of what nodes tell every ten seconds alone: of links, messages' times, want of a core."""

Query = tuple[str, str]
"""PromQL, and what its series are called."""


def value(metric: str, by: str = "trial", where: str = HERE) -> str:
    """A gauge of which each group has one, or the highest of a group."""
    return f"max by ({by}) ({metric}{{{where}}})"


def total(metric: str, by: str = "trial", where: str = HERE) -> str:
    """What a counter, which begins with its trial, has counted; or a rate that has been recorded, added up."""
    return f"sum by ({by}) ({metric}{{{where}}})"


def mean(metric: str, by: str, where: str = HERE) -> str:
    """The mean of a group."""
    return f"avg by ({by}) ({metric}{{{where}}})"


def rate(metric: str, by: str = "trial", where: str = HERE, over: str = "$__rate_interval") -> str:
    """How fast a counter grows, each second."""
    return f"sum by ({by}) (rate({metric}{{{where}}}[{over}]))"


def ten(query: str, by: str = "trial, node", how: str = "max", *, least: bool = False) -> str:
    """Those ten of a query's series, one for each `by`, that were highest at some time of what is shown; or lowest.

    `topk` alone has the ten of each moment, which are many more in the course of time.
    """
    over = f"{how}_over_time(({query})[$__range:$__interval] @ end())"
    return f"({query}) and on ({by}) {'bottomk' if least else 'topk'}(10, {over})"


def ratio(above: str, below: str) -> str:
    """A division whose divisor may be zero: there it has no value."""
    return f"{above} / ({below} > 0)"


def share(parts: str, by: str) -> str:
    """Each of `parts` divided by the sum of those that agree in the labels `by`."""
    return f"{parts} / on ({by}) group_left () (sum by ({by}) ({parts}) > 0)"


def latest(metric: str, by: str = "trial", where: str = HERE) -> str:
    """The last value in the time that is shown: also of a node, or a trial, that is over."""
    return f"max by ({by}) (last_over_time({metric}{{{where}}}[$__range]))"


def latest_total(metric: str, by: str = "trial", where: str = HERE) -> str:
    """Likewise what counters counted in all; a node that is started anew is another instance to Prometheus."""
    return f"sum by ({by}) (last_over_time({metric}{{{where}}}[$__range]))"
