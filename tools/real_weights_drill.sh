#!/bin/bash
# Drills real weights: what the CPU and the GPU make of a checkpoint must be equal to the byte.
#   tools/real_weights_drill.sh PROGRAM FILE [RECIPE...]
# PROGRAM: mxjit; FILE: safetensors, of real weights (tools/quickstart.sh fetches some into .cache/model); RECIPE: of
# `mxjit quantize`, default mxfp8. Fetches nothing. Fails with 1 on a difference, with 3 where there is no GPU.
set -u
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
program=$(realpath "$(command -v "$1" || echo "$1")") file=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- mxfp8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "real_weights_drill: $*"; }
fail() { # status, message
  say "FAILED: $2" >&2
  exit "$1"
}

[ -x "$program" ] || fail 2 "$program is no program"
[ -r "$file" ] || fail 2 "$file cannot be read"

for recipe in "$@"; do
  for device in cpu cuda; do
    from=$SECONDS
    "$program" quantize "$file" "$work/$device.safetensors" --recipe "$recipe" --device $device --json \
      >"$work/$device.json" 2>"$work/errors"
    status=$?
    [ $status -eq 0 ] || cat "$work/errors" "$work/$device.json" >&2
    [ $status -ne 3 ] || fail 3 "the GPU or what its kernels need is missing here; nothing was compared"
    [ $status -eq 0 ] || fail 1 "$recipe on $device ended with status $status"
    say "$recipe on $(sed -n 's/^ *"device": *"\([^"]*\)".*/\1/p' "$work/$device.json"): $((SECONDS - from)) s," \
      "$(sha256sum <"$work/$device.safetensors" | cut -d ' ' -f 1)"
  done
  grep -q '"device": *"cuda:' "$work/cuda.json" || fail 1 "$recipe did not run on the GPU"
  cmp "$work/cpu.safetensors" "$work/cuda.safetensors" || fail 1 "$recipe: CPU and GPU differ"
done
say "passed: $(stat -c %s "$file") bytes, $*; CPU and GPU agree to the byte"
