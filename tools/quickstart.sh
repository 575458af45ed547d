#!/usr/bin/env bash
# Installs what is missing, builds build/bin/mxjit and shows the main job: kernels for two models prewarmed into a cache,
# real weights quantized, and everything once more from the cache. Works with and without a GPU or a CUDA toolkit.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/setup.sh

setup_build
setup_cuda
note "CUDA headers: $MXJIT_CUDA_INCLUDE"
note "NVRTC:        $MXJIT_NVRTC"

say "Building build/bin/mxjit"
configure release -DBUILD_TESTING=OFF >/dev/null
cmake --build build --parallel "$cores"
mxjit=build/bin/mxjit

work=build/quickstart
rm -rf "$work"
mkdir -p "$work"
export MXJIT_CACHE_DIR=$PWD/$work/cache
started=$SECONDS

run() {
  printf '\n    $ %s\n' "$*"
  "$@" 2>&1 | sed 's/^/    /'
}

say "What is here"
run $mxjit doctor

arch=sm_90a
say "Compiling the kernels that two models need, into a cache (no GPU involved)"
for model in llama-3-8b llama-4-scout; do
  run $mxjit prewarm --model tools/quickstart/$model/config.json --arch $arch
done

say "Once more: nothing is left to compile"
run $mxjit prewarm --model tools/quickstart/llama-3-8b/config.json --arch $arch

say "One problem explained: which kernel, and where it is"
run $mxjit explain tools/quickstart/mlp_input.json --arch $arch

say "Quantizing a file of weights to MXFP8"
if ! setup_model; then
  note "the registry was not reached; a small file is made instead"
  need python3 has_command python3
  install_missing
  python3 tools/quickstart/small_model.py $work/model.safetensors
  MXJIT_REAL_SAFETENSORS=$work/model.safetensors
fi
run $mxjit quantize "$MXJIT_REAL_SAFETENSORS" $work/model-mxfp8.safetensors --recipe mxfp8
say "And again: the same bytes"
run $mxjit quantize "$MXJIT_REAL_SAFETENSORS" $work/again.safetensors --recipe mxfp8
cmp $work/model-mxfp8.safetensors $work/again.safetensors
note "the two files are equal to the byte"
run ls -lhL "$MXJIT_REAL_SAFETENSORS" $work/model-mxfp8.safetensors

say "Done in $((SECONDS - started)) s after the build"
note "the program:  build/bin/mxjit --help"
note "the cache:    MXJIT_CACHE_DIR=$MXJIT_CACHE_DIR $mxjit cache ls"
case $MXJIT_NVRTC in
  "$cache_dir"/*) note "to use it yourself: export MXJIT_NVRTC=$MXJIT_NVRTC" ;;
esac
