#!/usr/bin/env bash
# Builds and runs every test that this machine can run: tools/test.sh [--long] [--preset NAME]...
#   --long         also the tests labelled long, longer loops in the others (MXJIT_LONG=1), and clang-tidy over the sources
#   --preset NAME  only this preset (release, debug, asan, tsan); may be repeated. Default: release, asan and tsan
set -uo pipefail
cd "$(dirname "$0")/.." || exit
source tools/setup.sh

long=false
presets=()
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=true ;;
    --preset)
      [ $# -ge 2 ] || fail "--preset needs a name"
      presets+=("$2")
      shift
      ;;
    -h | --help)
      sed -n '2,4s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift
done
[ ${#presets[@]} -gt 0 ] || presets=(release asan tsan)
for preset in "${presets[@]}"; do
  case $preset in release | debug | asan | tsan) ;; *) fail "unknown preset $preset: release, debug, asan or tsan" ;; esac
done

summary=()
failed=false
stage() { # stage NAME COMMAND...: runs it and remembers how it went
  local name=$1 from=$SECONDS result=passed
  shift
  say "$name"
  "$@" || { result=FAILED; failed=true; }
  summary+=("$(printf '%-28s %-7s %5d s' "$name" $result $((SECONDS - from)))")
  [ $result = passed ]
}

setup() {
  setup_build && setup_tests && setup_cuda && setup_python || return 1
  export MXJIT_PYTHON=$cache_dir/python/bin/python PATH=$cache_dir/python/bin:$PATH
  "$MXJIT_PYTHON" -c 'import numpy, safetensors' 2>/dev/null ||
    "$cache_dir/python/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 2 numpy safetensors ||
    { note "numpy and safetensors could not be fetched: tests that need them are skipped"; unset MXJIT_PYTHON; }
  setup_model || note "the real model could not be fetched: tests that need it are skipped"
}

build() { configure "$1" >/dev/null && cmake --build --preset "$1" --parallel "$cores"; }

tidy() {
  has_command clang-tidy || { note "skipped: clang-tidy is not installed"; return 0; }
  # The preset that compiles file by file, and the one header that it generates.
  configure debug >/dev/null && cmake --build --preset debug --target mxjit_digest_files || return 1
  # Its count of what it suppressed in other people's headers, a line a file, is no news.
  find src tools -name '*.cpp' -print0 | xargs -0 -n 1 -P "$cores" clang-tidy --quiet -p build/debug 2>/dev/null
}

stage "set up" setup || fail "the set-up failed"

# One ctest run over all builds: a folder whose test file names the others.
mkdir -p build/all
: >build/all/CTestTestfile.cmake
for preset in "${presets[@]}"; do
  folder=$PWD/build
  [ "$preset" = release ] || folder=$folder/$preset
  stage "build $preset" build "$preset" && echo "subdirs(\"$folder\")" >>build/all/CTestTestfile.cmake
done
! $long || stage "clang-tidy" tidy

without=(-LE '^long$')
! $long || { without=(); export MXJIT_LONG=1; }
log=build/all/ctest.log
run_tests() {
  ctest --test-dir build/all --parallel "$cores" --output-on-failure --no-tests=error "${without[@]}" |& tee "$log"
  return "${PIPESTATUS[0]}"
}
stage "tests" run_tests

# Reasons: GoogleTest writes "FILE:LINE: Skipped" with the reason on the next line.
skipped=$(grep -c '\*\*\*Skipped' "$log")
say "Summary"
for line in "${summary[@]}"; do note "$line"; done
note "skipped: $skipped"
awk '/Skipped$/ && !/\*\*\*/ { getline reason; count[reason]++ } END { for (r in count) printf "%6d  %s\n", count[r], r }' \
  build/all/Testing/Temporary/LastTest.log | sort -rn | while read -r line; do note "  $line"; done
! $failed || note "something above FAILED"

# The runner's own closing lines end the output.
printf '\n'
sed -n '/tests passed,/,$p' "$log"
! $failed
