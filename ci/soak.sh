#!/usr/bin/env bash
# A soak of the example live_graph: queries come and go at random while the graph changes; results must be right, memory flat.
#
#   ci/soak.sh SECONDS [SEED]    soaks, built in release; the curve and what was shown are kept in target/soak/
#   ci/soak.sh canary [SECONDS]  each planted fault (60 seconds) must be noticed: queries or snapshots that are kept, a wrong answer
#
# Exits with 1 if a result differs, if memory in the last quarter is above that in the second by more than is allowed, or if
# a planted fault is not noticed. Takes what the example takes: two cores. Builds in CARGO_TARGET_DIR (target).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
}
number() {
    [[ "${1:-}" =~ ^[0-9]+$ ]] || usage
}

what=${1:-}
case $what in
    canary) seconds=${2:-60} seed=1 ;;
    *) seconds=$what seed=${2:-1} ;;
esac
number "$seconds"
number "$seed"

unset KPG_SOAK_FAULT
cargo build --release --locked --example live_graph
run=${CARGO_TARGET_DIR:-target}/release/examples/live_graph
out=target/soak
mkdir -p "$out"

# A fault, the seconds that it gets, and the words that must come of it.
must_notice() {
    local log=$out/canary-$1.log
    if KPG_SOAK_FAULT=$1 "$run" --soak "$2" --curve "$out/canary-$1.tsv" >"$log" 2>&1; then
        echo "the planted fault \`$1\` is not noticed: $log" >&2
        exit 1
    fi
    tail -n 1 "$log" | grep -q "$3" || { echo "\`$1\` ended otherwise than by \"$3\": $log" >&2 && exit 1; }
    echo "$1: $(tail -n 1 "$log")"
}

if [ "$what" = canary ]; then
    must_notice answers 20 "the changes add up to\|has other edges"
    must_notice queries "$seconds" "memory is not flat"
    must_notice snapshots "$seconds" "memory is not flat"
    echo "each planted fault is noticed"
    exit
fi
name=$out/$seconds-seed-$seed
echo "to be kept: $name.tsv, $name.log"
"$run" --soak "$seconds" --seed "$seed" --curve "$name.tsv" 2>&1 | tee "$name.log"
