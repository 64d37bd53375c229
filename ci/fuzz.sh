#!/usr/bin/env bash
# Fuzzing: each target drives one check that the tests share, with inputs that libFuzzer grows by coverage.
#
#   ci/fuzz.sh SECONDS [TARGET ...]           each target for so long, one after the other; a table at the end
#   ci/fuzz.sh record SECONDS                 the same, and the table is kept as fuzz/RESULTS.md
#   ci/fuzz.sh canary [SECONDS] [TARGET ...]  each target with a planted fault, from nothing; found within so long (120)
#   ci/fuzz.sh replay TARGET FILE ...         inputs once more
#
# Needs a nightly toolchain (rustup toolchain install nightly), cargo-fuzz (cargo +nightly install cargo-fuzz --locked) and
# a C++ compiler. Everything lies in CARGO_TARGET_DIR (target, unless set): corpora in fuzz/corpus, where the next run goes
# on, logs in fuzz/logs, inputs that failed in fuzz/findings. Exits with 1 if there is a finding.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

# Target, and the longest input that is tried: as many operations as a run of some milliseconds has.
targets=(arena:1024 columnar:256 batch:768 spine:512 tracker:768 dataflow:768)

usage() {
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
}

number() {
    [[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || usage
}

build() {
    local missing=0
    if ! cargo +nightly --version >/dev/null 2>&1; then
        echo "a nightly toolchain is missing: rustup toolchain install nightly" >&2
        missing=1
    elif ! cargo +nightly fuzz --version >/dev/null 2>&1; then
        echo "cargo-fuzz is missing: cargo +nightly install cargo-fuzz --locked" >&2
        missing=1
    fi
    if ! command -v c++ >/dev/null; then
        echo "a C++ compiler is missing, for libFuzzer: g++ or clang++" >&2
        missing=1
    fi
    [ "$missing" -eq 0 ] || exit 3
    host=$(rustc +nightly -vV | sed -n 's/^host: //p')
    binaries="$CARGO_TARGET_DIR/$host/release"
    # Inputs have no magic words that comparisons would tell, and noting each takes a quarter of the time.
    echo "==> $SECONDS s: building, with AddressSanitizer and debug assertions"
    cargo +nightly fuzz build --no-trace-compares --codegen-units 16 "$@"
}

# Those named, or all, as name:length.
chosen() {
    local name target
    if [ $# -eq 0 ]; then
        printf '%s\n' "${targets[@]}"
    fi
    for name in "$@"; do
        for target in "${targets[@]}"; do
            [ "${target%%:*}" != "$name" ] || { echo "$target" && continue 2; }
        done
        echo "there is no target $name" >&2
        return 1
    done
}

# One run: target, longest input, seconds, log, and directories of inputs. Fails if there is a finding.
fuzz() {
    local target=$1 longest=$2 seconds=$3 log=$4
    shift 4
    timeout $((seconds + 180)) "$binaries/$target" "$@" -max_total_time="$seconds" -max_len="$longest" -len_control=0 \
        -print_funcs=0 -timeout=100 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$findings/$target-" >"$log" 2>&1
}

# A number of the log's last line of progress, or of its statistics.
progress() {
    grep -oE "\b$1: [0-9]+" "$2" | tail -n 1 | grep -oE '[0-9]+' || echo '?'
}
statistic() {
    sed -n "s/^stat::$1: *//p" "$2" | tail -n 1 | grep . || echo '?'
}

run_all() {
    local seconds=$1 failed=0 line target longest
    shift
    rows=()
    for line in $(chosen "$@"); do
        target=${line%%:*} longest=${line##*:}
        local log="$logs/$target.log" result=none
        mkdir -p "$corpus/$target"
        echo "==> $SECONDS s: $target for $seconds s"
        if ! fuzz "$target" "$longest" "$seconds" "$log" "$corpus/$target" "fuzz/regressions/$target"; then
            result=FOUND failed=1
            tail -n 60 "$log"
            echo "$target has a finding: see $log, and its input in $findings"
        fi
        rows+=("| $target | $seconds | $(statistic number_of_executed_units "$log") \
| $(statistic average_exec_per_sec "$log") | $(progress cov "$log") | $(progress ft "$log") \
| $(find "$corpus/$target" -type f | wc -l) | $(statistic peak_rss_mb "$log") | $result |")
        echo "${rows[-1]}"
    done
    table "$seconds" | tee "$CARGO_TARGET_DIR/fuzz/table.md"
    return "$failed"
}

table() {
    echo "| target | seconds | executions | per second | edges | features | corpus | peak MB | findings |"
    echo "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    printf '%s\n' "${rows[@]}"
}

record() {
    {
        echo "# Fuzzing: the latest run that was recorded"
        echo
        echo "\`ci/fuzz.sh record $1\`, $(date -u +%Y-%m-%d), $(nproc) cores of $(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1),"
        echo "$(rustc +nightly --version), AddressSanitizer and debug assertions; the corpus of the runs before."
        echo
        cat "$CARGO_TARGET_DIR/fuzz/table.md"
    } >fuzz/RESULTS.md
}

canaries() {
    local seconds=$1 failed=0 line target longest
    shift
    for line in $(chosen "$@"); do
        target=${line%%:*} longest=${line##*:}
        local log="$logs/$target-canary.log" fresh started=$SECONDS
        fresh=$(mktemp -d)
        findings=$fresh
        mkdir "$fresh/corpus"
        if KPG_FUZZ_CANARY=1 fuzz "$target" "$longest" "$seconds" "$log" "$fresh/corpus"; then
            echo "$target: the planted fault was NOT found in $seconds s"
            failed=1
        elif ! "$binaries/$target" "$fresh/$target"-crash-* >>"$log" 2>&1; then
            echo "$target: failed, but not by the planted fault: see $log"
            failed=1
        else
            echo "$target: the planted fault was found in $((SECONDS - started)) s; without it the input passes"
        fi
        rm -r "$fresh"
    done
    return "$failed"
}

corpus="$CARGO_TARGET_DIR/fuzz/corpus" logs="$CARGO_TARGET_DIR/fuzz/logs" findings="$CARGO_TARGET_DIR/fuzz/findings"
mkdir -p "$corpus" "$logs" "$findings"
unset KPG_FUZZ_CANARY

case "${1:-}" in
canary)
    shift
    seconds=120
    if [[ "${1:-}" =~ ^[0-9] ]]; then
        number "$1"
        seconds=$1
        shift
    fi
    chosen "$@" >/dev/null
    build
    canaries "$seconds" "$@"
    ;;
replay)
    [ $# -ge 3 ] || usage
    target=$2
    chosen "$target" >/dev/null
    shift 2
    build "$target"
    "$binaries/$target" "$@"
    ;;
record)
    number "${2:-}"
    build
    status=0
    run_all "$2" || status=1
    record "$2"
    exit "$status"
    ;;
*)
    number "${1:-}"
    chosen "${@:2}" >/dev/null
    build
    run_all "$@"
    ;;
esac
