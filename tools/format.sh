#!/usr/bin/env bash
# Formats every C++ and CUDA file in place; with --check only reports, and exits 77 where clang-format 14 is missing
# (other versions format differently).
set -euo pipefail
cd "$(dirname "$0")/.."

tool=""
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version 14\."; then
    tool=$candidate
    break
  fi
done
if [ -z "$tool" ]; then
  echo "Skipped"
  echo "clang-format 14 is not installed"
  exit 77
fi
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run --Werror)
find include src kernels tools tests -name '*.[ch]pp' -print0 -o -name '*.cuh' -print0 -o -name '*.cu' -print0 -o -name '*.h' -print0 |
  xargs -0 "$tool" "${mode[@]}"
