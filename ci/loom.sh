#!/usr/bin/env bash
# The loom models of all that threads share, and for each the mutants that loom must reject.
#
#   ci/loom.sh          every model, three threads with one preemption more, two without a bound: minutes
#   ci/loom.sh quick    every model and mutant within the bounds that stand in the code: what .ci/run does
#
# A build of its own, since all code is built with cfg(loom): in target/loom, unless CARGO_TARGET_DIR is set. Fails if a
# model finds a fault, if a mutant is not rejected, if a place that can be broken has no mutant, if nothing was run.
set -euo pipefail
cd "$(dirname "$0")/.."

# Package, and which of its tests are models. What is added to the engine's shared parts is added here.
models=(
    "kpg sync"
    "kpg protocol"
    "kpg-arena loom"
)

case "${1:-full}" in
full) export KPG_LOOM=full ;;
quick) unset KPG_LOOM ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target/loom}"

# Every place that `ordering` or `mutant` names has a test that breaks it.
named() {
    grep -ohE "$1\(\"[a-z_]+\.[a-z_]+\"" src/sync/*.rs | grep -oE '"[^"]+"' | sort -u
}
untested=$(comm -23 <(named '\b(ordering|mutant)') <(named '\bwith_mutant'))
if [ -n "$untested" ]; then
    printf 'no mutant breaks: %s\n' $untested >&2
    exit 1
fi

for entry in "${models[@]}"; do
    read -r package filter <<<"$entry"
    printf '\n==> %s s: models of %s, %s, %s\n' "$SECONDS" "$package" "$filter" "${1:-full}"
    run=(cargo test --profile loom --locked --package "$package" --lib)
    list=$("${run[@]}" "$filter" -- --list)
    all=$(grep -c ': test$' <<<"$list" || true)
    mutants=$(grep -cE '(mutant_|rejects_).*: test$' <<<"$list" || true)
    if [ "$mutants" -eq 0 ] || [ "$all" -le "$mutants" ]; then
        echo "$package: $all tests, $mutants mutants: the filter $filter finds no models" >&2
        exit 1
    fi
    "${run[@]}" "$filter"
    printf '==> %s s: %s, %s: %s tests, of which %s are mutants that were rejected\n' "$SECONDS" "$package" "$filter" \
        "$all" "$mutants"
done
