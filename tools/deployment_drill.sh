#!/bin/bash
# Drills a deployment: a bundle must serve every problem of a trace where nothing can be compiled.
#   tools/deployment_drill.sh PROGRAM BUNDLE TRACE [COUNT]
# PROGRAM: mxjit; BUNDLE: of `mxjit cache export`; TRACE: written by MXJIT_TRACE=FILE; COUNT: problems to replay, in
# turn (default 1000). NVRTC is hidden, PATH is empty, compilation is forbidden. Each problem goes through the library
# on every GPU here: nothing may be compiled, and nothing loaded after --load. Without a GPU every problem is resolved to
# its kernels in the bundle, and the last line says that nothing was launched. Fails when any of that does.
set -u
[ $# -ge 3 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
program=$(realpath "$(command -v "$1" || echo "$1")") bundle=$(realpath "$2") trace=$(realpath "$3") count=${4:-1000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "deployment_drill: $*"; }
fail() {
  say "FAILED: $*" >&2
  exit 1
}

# The program as it is deployed: no compiler, no toolkit, an empty cache of its own.
deployed() { # bundle, command...
  local layers=$1
  shift
  env -i PATH= HOME=/nonexistent LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" MXJIT_NVRTC=/nonexistent \
    MXJIT_COMPILE=forbid MXJIT_CACHE_DIR="$work/cache" MXJIT_BUNDLE_PATH="$layers" "$program" "$@"
}

# Every value of a counter in the program's JSON, one a line.
values() { sed -n "s/^ *\"$1\": *\([0-9a-z]*\),\{0,1\}$/\1/p" "$2"; }

zero() { # counter, file
  local found
  found=$(values "$1" "$2")
  [ -n "$found" ] || fail "no counter \"$1\" in the program's answer"
  ! grep -qvx 0 <<<"$found" || fail "$1: $(tr '\n' ' ' <<<"$found")"
}

deployed "$bundle" doctor --json >"$work/doctor.json" || fail "the program does not start"
[ "$(values compile "$work/doctor.json")" = false ] || fail "a compiler was found; the drill would prove nothing"
say "no compiler is found"

# The drill can fail: without the bundle it does.
deployed "" replay "$trace" --count 1 >"$work/none.log" 2>&1
[ $? -eq 1 ] || fail "without the bundle a replay should end with status 1: $(cat "$work/none.log")"
say "without the bundle: $(grep -m 1 'error:' "$work/none.log")"

deployed "$bundle" replay "$trace" --load --count "$count" --json >"$work/replay.json" ||
  fail "the replay ended with status $?"
cat "$work/replay.json"
[ "$(values replayed "$work/replay.json")" = "$count" ] || fail "not every problem was replayed"
zero compiled "$work/replay.json"
zero library_loads "$work/replay.json"
zero function_loads "$work/replay.json"
[ ! -e "$work/cache" ] || fail "something was written to the cache"

if [ "$(values launched "$work/replay.json")" = true ]; then
  say "passed: $count problems launched on every GPU, nothing compiled, nothing loaded"
else
  say "passed without a GPU: $count problems resolved to kernels of the bundle; NOTHING WAS LOADED OR LAUNCHED"
fi
