#!/bin/bash
# Runs the device tests on this machine's GPU: whole, then small under compute-sanitizer's memcheck, racecheck and initcheck.
#   tools/device_suite.sh [BUILD [OUT]]
# Writes OUT/{device,memcheck,racecheck,initcheck}.json and .log; fails when any of them did. BUILD: build, OUT:
# tests/device/results. MXJIT_GOLDENS names the golden cases; MXJIT_DEVICE_PARTS chooses parts (default all four);
# MXJIT_DEVICE_PROBLEMS and MXJIT_DEVICE_GEMMS are how many problems of chance part device runs (default 10000, and 5000
# of GEMM).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build}
out=${2:-$root/tests/device/results}
program=$build/bin/test_device
[ -x "$program" ] || { echo "device_suite: $program is missing; build target test_device" >&2; exit 2; }
mkdir -p "$out"
status=0

# The parts share their kernels: under the sanitizer nothing is compiled.
if [ -z "${MXJIT_CACHE_DIR:-}" ]; then
  MXJIT_CACHE_DIR=$(mktemp -d)
  export MXJIT_CACHE_DIR
  trap 'rm -rf "$MXJIT_CACHE_DIR"' EXIT
fi

run() { # name, command...
  local name=$1
  shift
  echo "device_suite: $name"
  MXJIT_DEVICE_SUITE=$name MXJIT_DEVICE_RESULTS=$out/$name.json "$@" >"$out/$name.log" 2>&1
  local result=$?
  grep -E '^\[  (PASSED|FAILED|SKIPPED)|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log"
  if [ $result -ne 0 ]; then
    echo "device_suite: $name failed with status $result; its log ends:" >&2
    tail -n 60 "$out/$name.log" >&2
    status=1
  fi
}

sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null)
for part in ${MXJIT_DEVICE_PARTS:-device memcheck racecheck initcheck}; do
  case $part in
    device)
      run device env MXJIT_DEVICE_PROBLEMS="${MXJIT_DEVICE_PROBLEMS:-10000}" MXJIT_DEVICE_GEMMS="${MXJIT_DEVICE_GEMMS:-5000}" \
        "$program" --gtest_brief=1
      ;;
    memcheck | racecheck | initcheck)
      if [ -z "$sanitizer" ]; then
        echo "device_suite: $part skipped: compute-sanitizer is neither in PATH nor in CUDA_HOME" >&2
        status=1
        continue
      fi
      options=(--tool "$part" --error-exitcode 9)
      # Calls that are meant to fail are errors the tests look at themselves. Launches of many threads at once are more
      # than racecheck can follow.
      skip=$([ "$part" = racecheck ] && echo ':RandomProblems.*')
      [ "$part" = racecheck ] || options+=(--report-api-errors no)
      MXJIT_DEVICE_SMALL=1 run "$part" "$sanitizer" "${options[@]}" "$program" --gtest_brief=1 \
        --gtest_filter="-VanishedContext.*:DispatchOnDevice.RefusesHostPointersByName$skip"
      ;;
    *) echo "device_suite: unknown part $part" >&2; exit 2 ;;
  esac
done
exit $status
