#!/usr/bin/env bash
# Builds both sides and compares them: benches/peers/run.sh quick|full [--runs N] [--again N] [--only WORKLOAD] [--out DIR]
#
# Needs cargo, a C compiler (mimalloc is built with it), two cores that nobody else uses, and for `full` some 12 GiB of
# memory and the published graphs (a directory named in KPG_DATA, or ../shared/data beside the repository).
set -euo pipefail
cd "$(dirname "$0")"
cargo build --release --locked
exec "${CARGO_TARGET_DIR:-target}/release/compare" "$@"
