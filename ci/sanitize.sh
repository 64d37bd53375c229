#!/usr/bin/env bash
# Sanitizers: the tests once more, by a compiler or a machine that watches each access.
#
#   ci/sanitize.sh address    AddressSanitizer and LeakSanitizer; in the engine's tests each block has its own mapping
#   ci/sanitize.sh thread     ThreadSanitizer, std included: all that threads share, and engines on threads
#   ci/sanitize.sh canary     planted overruns, uses after the free and races: each must be found
#   ci/sanitize.sh valgrind   memcheck, without any instrumentation, over the unit tests of the arena and of src/sync/
#
# Needs a nightly toolchain (rustup toolchain install nightly); thread its sources too, for std is built
# (rustup component add rust-src --toolchain nightly); valgrind needs only valgrind. Builds lie in CARGO_TARGET_DIR (target,
# unless set), a directory for each kind, logs in sanitize/. Exits with 1 if there is a finding, with 3 if a tool is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-$PWD/target}"
logs="$target/sanitize"
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-line-tables-only}"
unset KPG_ARENA_PER_BLOCK KPG_MUTANT

# In this test faults are signals that end children; elsewhere the sanitizer reports them.
faults=the_test_mode_sees_overruns_and_uses_after_the_free
# A simulation of a thousand queries, on one thread.
long=queries_that_nobody_watches_do_not_hear_each_tick

# What AddressSanitizer runs with each block in a mapping of its own: package, targets, arguments.
per_block=(
    "kpg-columnar --features kpg-arena/check --lib --test derive"
    "kpg --lib -- sync:: runtime:: progress:: client:: trace::spine::tests::the_debt"
    "kpg --test trace_batches --test trace_lives"
    "kpg-proof --test simulation"
)
# What ThreadSanitizer runs. Signals end children in the arena's test that is skipped, and it would report them; that of misuse
# has a limit of time.
shared=(
    "kpg-arena --lib -- --skip $faults"
    "kpg --lib -- sync:: runtime:: client::"
    "kpg --test engine -- sharing:: custom:: layers:: --skip $long"
    "kpg-proof --test misuse -- --skip ten_thousand_handles_leave_nothing"
)
# Orderings of src/sync/ that ThreadSanitizer must report once they are relaxed. Of those that loom's mutants relax only
# these: the others need an order of events that unit tests on threads have now and then, or never.
orderings=(spsc.filled spsc.reuse spsc.spare log.filled cell.load cell.store)

usage() {
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
}

# Ends with 3 unless the tools for a sanitizer are there; `std` if std is built too.
need() {
    if ! cargo +nightly --version >/dev/null 2>&1; then
        echo "a nightly toolchain is missing: rustup toolchain install nightly" >&2
        exit 3
    fi
    if [ "${1:-}" = std ] && [ ! -e "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/std" ]; then
        echo "the sources of std are missing: rustup component add rust-src --toolchain nightly" >&2
        exit 3
    fi
}

# cargo test with a sanitizer: its name, then what cargo test gets.
sanitized() {
    local kind=$1
    shift
    local std=()
    [ "$kind" != thread ] || std=(-Zbuild-std)
    CARGO_TARGET_DIR="$target/$kind" RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=$kind" \
        timeout 3000 cargo +nightly test --locked "${std[@]}" --target "$host" "$@"
}

# A name for a log.
name() {
    tr -cs 'a-z_' - <<<"${*%%-- *}" | sed 's/-*$//'
}

# A run that must be without findings: a name for the log, then a command.
clean() {
    local log="$logs/$1.log" started=$SECONDS
    shift
    echo "==> $SECONDS s: $*"
    if "$@" >"$log" 2>&1; then
        grep '^test result' "$log" | sed "s/\$/ (with the build $((SECONDS - started)) s)/"
    else
        tail -n 60 "$log"
        echo "FINDING: see $log"
        failed=1
    fi
}

# A run that must be ended by a finding: what the report says, a name for the log, then a command.
found() {
    local report=$1 log="$logs/$2.log"
    shift 2
    if "$@" >"$log" 2>&1 || ! grep -q "$report" "$log"; then
        tail -n 30 "$log"
        echo "NOT found: $report, by $*: see $log"
        failed=1
    else
        echo "found, as it must be: $(grep -m1 "$report" "$log")"
    fi
}

address() {
    need
    local line
    clean address-arena sanitized address --package kpg-arena --lib -- --skip "$faults"
    ASAN_OPTIONS=handle_segv=0:handle_sigbus=0 clean address-faults sanitized address --package kpg-arena --lib -- "$faults"
    export KPG_ARENA_PER_BLOCK=1
    for line in "${per_block[@]}"; do
        # shellcheck disable=SC2086
        clean "address-$(name $line)" sanitized address --package $line
    done
    unset KPG_ARENA_PER_BLOCK
}

thread() {
    need std
    local line
    for line in "${shared[@]}"; do
        # shellcheck disable=SC2086
        clean "thread-$(name $line)" sanitized thread --package $line
    done
}

canary() {
    need std
    local planted run ordering
    for planted in planted_overrun planted_use_after_the_free; do
        run=(sanitized address --package kpg-arena --lib -- --ignored "$planted")
        clean "canary-$planted-unseen" "${run[@]}"
        KPG_ARENA_PER_BLOCK=1 found "ERROR: AddressSanitizer: SEGV" "canary-$planted" "${run[@]}"
    done
    found "WARNING: ThreadSanitizer: data race" canary-planted_race \
        sanitized thread --package kpg-arena --lib -- --ignored planted_race
    for ordering in "${orderings[@]}"; do
        KPG_MUTANT=$ordering found "WARNING: ThreadSanitizer: data race" "canary-$ordering" \
            sanitized thread --package kpg --lib -- "sync::${ordering%.*}::"
    done
}

# memcheck: no build of its own kind, and one thread at a time.
valgrind_runs() {
    if ! command -v valgrind >/dev/null; then
        echo "valgrind is missing: apt-get install valgrind" >&2
        exit 3
    fi
    local runner
    runner="CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$host")_RUNNER"
    export "$runner=valgrind --quiet --error-exitcode=9 --fair-sched=yes --leak-check=no"
    clean valgrind-arena timeout 900 cargo test --locked --package kpg-arena --lib -- --skip "$faults" --test-threads=1
    # The test that is skipped gives a thread 20 ms to begin.
    clean valgrind-sync timeout 900 cargo test --locked --package kpg --lib -- sync:: --skip a_deadline_closes --test-threads=1
}

mkdir -p "$logs"
failed=0
export LSAN_OPTIONS="suppressions=$PWD/ci/lsan.suppressions:print_suppressions=0"
# The first race ends a run: a thread that has read what it must not may wait for ever.
export TSAN_OPTIONS="halt_on_error=1"
case "${1:-}" in
address) address ;;
thread) thread ;;
canary) canary ;;
valgrind) valgrind_runs ;;
*) usage ;;
esac
exit "$failed"
