#!/usr/bin/env bash
# Simulation: random dataflow programs, workers and schedules chosen by seeds, against a naive evaluator.
#
#   ci/simulate.sh N [FROM]    N seeds of each kind, from FROM (0) on, built in release; a line with seeds a minute
#   ci/simulate.sh replay S    seed S once more, with its programs printed
#
# One thread runs all workers, so a seed is the same run each time: a failure prints its seed, the program made smaller, a
# minimal schedule under which that fails, and how to run the seed again. Kinds: total times, partial times. Exits with 1 if a seed fails. Builds in CARGO_TARGET_DIR (target).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
}
number() {
    [[ "${1:-}" =~ ^[0-9]+$ ]] || usage
}

unset KPG_SEED KPG_SEEDS KPG_FROM
# The tests' own package is not optimized, since it is compiled more often than it runs long; here it runs long.
run=(cargo --config profile.release.package.kpg-proof.opt-level=3 test --release --locked --test oracle -- in_simulation)
if [ "${1:-}" = replay ]; then
    number "${2:-}"
    KPG_SEED=$2 exec "${run[@]}" --nocapture --test-threads=1
fi
number "${1:-}"
number "${2:-0}"
[ "$1" -gt 0 ] || usage

kinds=$("${run[@]}" --list | grep -c ': test$' || true)
[ "$kinds" -gt 0 ] || { echo "the filter finds no simulations" >&2 && exit 1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$(date +%s)
if ! KPG_SEEDS=$1 KPG_FROM=${2:-0} "${run[@]}" >"$log" 2>&1; then
    cat "$log"
    seed=$(grep -m1 -oE '^seed [0-9]+' "$log" | grep -oE '[0-9]+' || true)
    [ -z "$seed" ] || echo "a seed that fails: $seed; once more: ci/simulate.sh replay $seed"
    exit 1
fi
seconds=$(($(date +%s) - started))
echo "$kinds kinds of $1 seeds, from ${2:-0} on, all as the evaluator says: $seconds s," \
    "$((kinds * $1 * 60 / (seconds > 0 ? seconds : 1))) seeds a minute"
