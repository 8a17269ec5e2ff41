#!/bin/sh
# Puts a run into the data of a Prometheus: its samples, and what the recording rules make of them.
#
#   sh make_blocks.sh SAMPLES RULES FIRST_S LAST_S DATA
#
# SAMPLES is OpenMetrics of the times from FIRST_S to LAST_S (whole seconds of Unix time), RULES a file of rules, DATA the
# folder of the Prometheus that is to have both. Prometheus computes rules only as it goes: so another one is started,
# which has the samples alone, and promtool asks it. It is gone afterwards. All blocks are made in a folder of their own
# and then moved in, each at once, so that nobody finds half a block.
#
# edgebed runs this on its own machine and in the container of docker-compose.yml: it takes prometheus, promtool, and a
# shell with what busybox has. The last line on standard error says what went wrong.
set -eu

samples=$1 rules=$2 first_s=$3 last_s=$4 data=$5
EVERY_S=5    # evaluation_interval of dashboards/prometheus/prometheus.yml
BLOCK_S=7200 # what a block of Prometheus spans
READY_S=60   # to open blocks, also on a busy machine
TRIES='1 2 3 4 5 6 7 8'

work='' server=''

main() {
    trap tidy EXIT
    trap 'exit 130' INT TERM HUP
    work=$(mktemp -d "$data/edgebed-replay.XXXXXX") || fail "nothing can be written to $data"
    export TMPDIR="$work" # for promtool: there may be no other place to write to
    cp "$rules" "$work/recording.yml"
    cd "$work" # promtool spreads evaluations by the name of the file: so they are at the same times each time
    promtool tsdb create-blocks-from openmetrics "$samples" samples >log 2>&1 || fail "promtool: $(last_line)"
    begin_server
    promtool tsdb create-blocks-from rules --url="$url" --start="$(rules_begin)" --end="$((last_s + EVERY_S))" \
        --eval-interval=${EVERY_S}s --output-dir=recorded recording.yml >log 2>&1 ||
        fail "promtool, of the recording rules: $(last_line)"
    end_server
    move_in
}

# promtool goes no further than a block in which it has no time to evaluate at: it begins early enough to have one.
rules_begin() {
    if [ $((first_s % BLOCK_S)) -ge $((BLOCK_S - EVERY_S)) ]; then
        echo $((first_s - EVERY_S))
    else
        echo "$first_s"
    fi
}

# A Prometheus of the samples alone, under a path that no other has; it neither deletes nor merges blocks.
begin_server() {
    name=${work##*/}
    echo 'global: {}' >prometheus.yml
    for try in $TRIES; do
        port=$((20000 + ($$ + try * 997) % 12000)) # below those that systems give out by themselves
        url=http://127.0.0.1:$port/$name
        prometheus --config.file=prometheus.yml --storage.tsdb.path=samples --storage.tsdb.retention.time=100y \
            --storage.tsdb.min-block-duration=2h --storage.tsdb.max-block-duration=2h \
            --web.listen-address="127.0.0.1:$port" --web.route-prefix="/$name" >server-log 2>&1 &
        server=$!
        if is_ready; then return; fi
        end_server
        if ! grep -q 'address already in use' server-log; then
            fail "a Prometheus for the recording rules ended at once: $(tail -n 1 server-log)"
        fi
    done
    fail "a Prometheus for the recording rules found no free port; the last that it tried was $port"
}

# Whether it answers; 1 if it has ended. One that does neither for too long is an error.
is_ready() {
    end_s=$(($(date +%s) + READY_S))
    while kill -0 "$server" 2>/dev/null; do
        if promtool query instant "$url" 1 >/dev/null 2>&1; then return 0; fi
        if [ "$(date +%s)" -ge "$end_s" ]; then
            fail "a Prometheus for the recording rules did not answer within $READY_S s: $(tail -n 1 server-log)"
        fi
        sleep 0.2 2>/dev/null || sleep 1
    done
    return 1
}

end_server() {
    if [ -n "$server" ]; then
        kill -KILL "$server" 2>/dev/null || true # nothing of it is kept
        wait "$server" 2>/dev/null || true
        server=''
    fi
}

move_in() {
    for meta in samples/*/meta.json recorded/*/meta.json; do
        block=${meta%/meta.json}
        [ -e "$meta" ] || continue
        # Root's blocks could not be deleted by Prometheus.
        if [ "$(id -u)" = 0 ]; then chown -R "$(stat -c %u:%g "$data")" "$block"; fi
        mv "$block" "$data/" || fail "nothing can be moved to $data"
    done
}

tidy() {
    end_server
    if [ -n "$work" ]; then rm -rf "$work"; fi
}

last_line() { grep -v '^[[:space:]]*$' log | tail -n 1; }

fail() {
    echo "$*" >&2
    exit 1
}

main
