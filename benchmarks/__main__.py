"""All benchmarks in one table, as ratios taken in one run, each beside its limit: `scripts/bench`.

Times depend on the machine and on what else it does; the ratios compare subjects that took turns within this run.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from benchmarks import PARTS

SCRAPE_S = 5
"""Seconds between two looks of Prometheus, as it is configured."""
SERVER_LIMITS = {"1 % sparse": 0.65, "dense": 0.6}
DEFAULT_PARTS = [*PARTS][:10]
"""The others need root, or Docker."""


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which to run (default: the first ten)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time: does it run at all?")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    chosen = options.parts or DEFAULT_PARTS
    measured: dict[str, Any] = {}
    for part in PARTS:
        if part in chosen:
            print(f"measuring {part} …", file=sys.stderr, flush=True)
            measured[part] = import_module(f"benchmarks.{PARTS[part]}").measure(quick=options.quick)
    if options.json:
        print(json.dumps(measured, indent=1))
        return
    for line in table(measured):
        print(line)


def table(measured: dict[str, Any]) -> Iterator[str]:
    """Lines of (what, measured, limit)."""
    yield f"{'what':<76} {'measured':>10}  limit"
    yield from map(_server, measured.get("server", ()))
    yield from _security(measured.get("security", ()))
    yield from _durability(measured.get("durability", ()))
    yield from _update(measured.get("update", {"us": {}}))
    yield from _direct(measured.get("direct", {}))
    if found := measured.get("simulation"):
        per_s = found["per_s"]
        for name, limit in (
            ("one process / bare, plain layers", ">= 0.85"),
            ("one process / bare, the same model", ">= 0.85"),
            ("a process a core / bare, likewise", ">= 0.63"),
        ):
            yield f"{'simulated updates/s, ' + name:<76} {found[name]:>10.2f}  {limit}"
        what = f"memory of all processes of a simulation of {found['workers']} workers, CNN"
        yield f"{what:<76} {found['memory_bytes'] / 1e9:>7.2f} GB  <= 3.0 GB"
        rates = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in per_s.items())
        yield f"    ({rates}; evaluation of the test set {found['evaluation_s']:.2f} s, apart)"
    yield from map(_churn, measured.get("churn", ()))
    if found := measured.get("nodes"):
        for name, limit in (("plain layers", "<= 20 %"), ("the same model", "<= 20 %")):
            what = f"worker's CPU a step over the bare gradient, {name}"
            rates = f"({found['step_ms']:.2f} ms of {found['bare_ms'][name]:.2f} ms)"
            yield f"{what:<76} {found['overhead'][name]:>9.0%}   {limit:<8} {rates}"
        yield f"{'memory of a forked worker, private':<76} {found['private_bytes'] / 1e6:>7.1f} MB  <= 30 MB"
    if found := measured.get("encoding"):
        for values, limit in (("float32", "<= 5.3"), ("float16", "<= 3.1")):
            what = f"bytes an entry at 1 % density, {values}, headers included ({found['images']})"
            pickles = f"(the AdaComp authors' pickles: {found['authors']:.1f})"
            yield f"{what:<76} {found[values]:>10.2f}  {limit:<8} {pickles}"
    if found := measured.get("compression"):
        yield from _compression(found)
    yield from map(_links, measured.get("links", ()))
    for row in measured.get("namespaces", ()):
        yield from _namespaces(row)
    if found := measured.get("containers"):
        yield from _containers(found)
    yield from map(_faults, measured.get("faults", ()))
    yield from _shards(measured.get("shards", ()))
    yield from map(_watching, measured.get("watching", ()))
    yield from _controllers(measured.get("controller", ()))


def _churn(row: dict[str, Any]) -> str:
    what = "processor time a step of churn, ten times as many steps / so many"
    times = ", ".join(f"{1e3 * each_s:.2f} ms each of {steps:,}" for steps, each_s in row["per_step_s"])
    return f"{what:<76} {row['ratio']:>10.2f}  <= 1.3   ({times})"


def _server(row: dict[str, Any]) -> str:
    what = f"server / raw ZeroMQ echo of the same frames, {row['push']}, {row['clients']} clients"
    rates = f"({row['server_per_s']:,.0f} of {row['echo_per_s']:,.0f} a second)"
    limit = f">= {SERVER_LIMITS[row['push']]}" if row["clients"] == 4 else ""
    return f"{what:<76} {row['ratio']:>10.2f}  {limit:<8} {rates}"


def _durability(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        for name, cpu_limit, rate_limit in (("log", "<= 1.06", ">= 0.9"), ("fsync", "", "")):
            subject = f"durability: {name} / none, {row['clients']} clients"
            times = f"({row['cpu_us'][name]:,.0f} of {row['cpu_us']['none']:,.0f} us)"
            rates = f"({row['per_s'][name]:,.0f} of {row['per_s']['none']:,.0f} a second)"
            yield f"{'server CPU time of an update, ' + subject:<76} {row['cpu'][name]:>10.2f}  {cpu_limit:<8} {times}"
            yield f"{'updates/s, ' + subject:<76} {row['rate'][name]:>10.2f}  {rate_limit:<8} {rates}"


def _update(found: dict[str, Any]) -> Iterator[str]:
    for name, us in found["us"].items():
        what = f"server CPU time of an update, with its log, {found['clients']} clients: {name}"
        yield f"{what:<99} {us:>7,.0f} us"


def _direct(found: dict[str, float]) -> Iterator[str]:
    ways = (("constant", ""), ("differentiated", "the report: about 3"))
    for name, published in ways if found else ():
        what = f"CPU time of a step, gradient loss minimised as well / back-propagation, {name}"
        times = f"({found[name]:.3f} of {found['none']:.3f} s)"
        yield f"{what:<91} {found[name] / found['none']:>7.2f}  {published:<20} {times}"


def _security(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        cpu_us, per_s = row["cpu_us"], row["per_s"]
        for name, limit in (("plain", "<= 1.1"), ("curve", "")):
            what = f"CPU time of an exchange, security: {name} / without any, {row['clients']} clients"
            times = f"{cpu_us[name]:,.0f} of {cpu_us['none']:,.0f} us"
            rates = f"{per_s[name]:,.0f} of {per_s['none']:,.0f} a second"
            yield f"{what:<76} {cpu_us[name] / cpu_us['none']:>10.2f}  {limit:<8} ({times}; {rates})"


def _compression(found: dict[str, Any]) -> Iterator[str]:
    for row in found["kinds"]:
        what = f"CPU time to compress and encode a million parameters: {row['what']}"
        sizes = f"{row['bytes_an_entry']:.2f} bytes an entry, {row['share_of_dense']:.2%} of dense float32"
        yield f"{what:<76} {row['send_us']:>7,.0f} us           (restored in {row['restore_us']:,.0f} us; {sizes})"
    for row in found["top_k"]:
        what = f"time of exact top-k, own / torch.topk, {row['fraction']:.1%} of a million"
        yield f"{what:<76} {row['ratio']:>10.2f}  <= 0.33  ({row['own_us']:,.0f} of {row['torch_us']:,.0f} us)"


def _links(row: dict[str, Any]) -> str:
    what = f"time an update, simulation / namespaces: {row['scenario']}"
    seconds = f"({row['simulation_s']:.4f} of {row['namespaces_s']:.4f} s; {row['namespaces_verdict']})"
    return f"{what:<79} {row['simulation_s'] / row['namespaces_s']:>7.3f}  within 10 %  {seconds}"


def _namespaces(row: dict[str, Any]) -> Iterator[str]:
    fleet = f"{row['workers']} workers with links of their own"
    if row["failed"]:
        yield f"{fleet:<76} {'failed':>10}           ({row['failed']})"
        return
    phases = ", ".join(f"{name} {row[f'{name}_s']:.1f}" for name in ("started", "ready"))
    what = f"{fleet}: from the launch until each has an update"
    yield f"{what:<76} {row['contributed_s']:>8.1f} s           ({phases} s; {row['updates_per_s']:.0f} updates/s)"
    limit = "<= 6.0 GB" if row["workers"] == 200 else ""
    machine = f"(the machine has {row['machine_bytes'] / 1e9:.1f} GB less than before)"
    what = f"{fleet}: memory of all processes"
    yield f"{what:<76} {row['pss_bytes'] / 1e9:>7.1f} GB  {limit:<9}{machine}"
    for doubt in row["doubts"]:
        yield f"    degraded: {doubt}"


def _containers(found: dict[str, Any]) -> Iterator[str]:
    up, memory = found["start_up"], found["memory"]
    phases = ", ".join(f"{name} {up[f'{name}_s']:.1f}" for name in ("started", "joined", "ready", "contributed"))
    what = f"from the command until each of {up['workers']} containers of 0.5 CPU has an update"
    yield f"{what:<76} {up['command_to_updates_s']:>8.1f} s  <= 40 s   (since the launch: {phases} s)"
    for task, per_s in found["per_s"].items():
        rates = f"({per_s['docker']:.0f} of {per_s['process']:.0f} a second)"
        what = f"updates/s, docker / process, {task}, two workers"
        yield f"{what:<76} {per_s['docker'] / per_s['process']:>10.2f}  >= 0.9   {rates}"
    what = f"memory of a worker's container, median of {memory['workers']}, CNN"
    contributed = f"every worker had an update after {memory['contributed_s']:.0f} s"
    peak = f"(highest peak {memory['peak_bytes'] / 1e6:.0f} MB; {contributed})"
    yield f"{what:<76} {memory['working_set_bytes'] / 1e6:>7.0f} MB           {peak}"
    for share in found["shares"]:
        yield f"{'share of a core got, of 0.5, while throttled':<76} {share:>10.3f}  within 5 %"


def _faults(row: dict[str, Any]) -> str:
    is_limited = row["action"] not in ("launch", "memory")  # a start, and an end by the kernel, take what they take
    limit = f"<= {250 if row['nodes'] == 1 else 1000} ms" if is_limited else ""
    nodes = "one node" if row["nodes"] == 1 else f"{row['nodes']} nodes at once"
    what = f"from asked to done, {row['runtime']}, {nodes}: {row['action']}"
    times = f"(worst of {row['times']}; median {1e3 * row['median_s']:.0f} ms)"
    return f"{what:<76} {1e3 * row['worst_s']:>7.0f} ms  {limit:<10} {times}"


def _shards(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    even_s = {(row["method"], row["links"]): row["measured_s"] for row in rows if row["cuts"] == "even"}
    for row in rows:
        what = f"time a step, measured / predicted: {row['method']}, {row['links']}, {row['cuts']} cuts"
        seconds = f"({1e3 * row['measured_s']:.1f} of {1e3 * row['predicted_s']:.1f} ms; {row['verdict']})"
        yield f"{what:<91} {row['measured_s'] / row['predicted_s']:>7.2f}  within 25 %  {seconds}"
    for row in rows:
        if row["cuts"] == "auto":
            what = f"time a step, even / auto cuts, one device four times slower: {row['method']}, {row['links']}"
            yield f"{what:<107} {even_s[row['method'], row['links']] / row['measured_s']:>7.2f}  > 1"


def _watching(row: dict[str, Any]) -> str:
    what = f"updates that watching costs, {row['workers']} workers without pauses: {row['what']}"
    spread = "" if row["low"] is None else f"; 95 % interval {row['low']:.1%} to {row['high']:.1%}"
    rates = f"{row['per_s']:.0f} of {row['without_per_s']:.0f} a second{spread}"
    own = f"Prometheus itself: {row['own']:.1%} of all cores"
    return f"{what:<76} {row['cost']:>9.1%}   <= 3 %    ({rates}; {own})"


def _controllers(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        fleet = f"a controller of {row['workers']:,} workers"
        ready = f"all ready after {row['up_s']:.0f} s, with {row['up_cpu_s']:.0f} s of its CPU"
        more = f"({row['lines_s']:,.0f} lines of the journal a second; {ready})"
        yield f"{fleet + ': CPU time':<76} {row['cpu']:>7.2f} cores        {more}"
        files = f"({row['files']:,} open files)"
        yield f"{fleet + ': memory':<76} {row['memory_bytes'] / 1e6:>7,.0f} MB           {files}"
        yield f"{fleet + ': journal':<76} {row['journal_bytes_s'] * 3.6e-3:>7,.0f} MB an hour"
        scraped, page = row["page_bytes"] * row["workers"] / SCRAPE_S, f"({row['page_bytes']:,} bytes each)"
        yield f"{fleet + ': pages that Prometheus reads':<76} {scraped / 1e6:>7.1f} MB a second  {page}"
        if row["missed"]:
            yield f"    {row['missed']} heartbeats were missed"


if __name__ == "__main__":
    main()
