// Real model weights through mxjit quantize, read back by other people's code.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

namespace fs = std::filesystem;

using RealInput = ToolTest;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Loads the result with the safetensors package, decodes with numpy alone and checks every element: E4M3
// keeps 3 fraction bits, so that half a step is 2^-4 of a normal value and 2^-10 scales below 2^-6 scales.
// The float scales are fp32 numbers themselves; their rounding is the last factor.
const char* const check_script = R"(
import json, struct, sys
import numpy as np
from safetensors import safe_open

def load(path):
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        return json.loads(f.read(length)), f.read()

source, result, recipe = sys.argv[1:4]
with safe_open(result, framework="np") as f:
    names, metadata = set(f.keys()), f.metadata()
header_in, data_in = load(source)
header_out, data_out = load(result)
assert names == {n for n in header_out if n != "__metadata__"}
method = json.loads(metadata["quantization_config"])["quant_method"]
assert method == {"mxfp8": "mxfp8", "mxfp8-32x32": "mxfp8", "fp8-block128": "fp8"}.get(recipe, "compressed-tensors")

def raw(header, data, name):
    begin, end = header[name]["data_offsets"]
    return np.frombuffer(data[begin:end], np.uint8)

def decode_input(name):
    bits, dtype = raw(header_in, data_in, name), header_in[name]["dtype"]
    if dtype == "F32": values = bits.view(np.float32)
    elif dtype == "F16": values = bits.view(np.float16).astype(np.float32)
    else: values = (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return values.reshape(header_in[name]["shape"]).astype(np.float64)

codes = np.arange(256)
exponent, fraction = (codes >> 3) & 15, codes & 7
table = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7))
table = np.where(codes >= 128, -table, table)
table[[127, 255]] = np.nan

rows, cols, code = {"mxfp8": (1, 32, True), "mxfp8-32x32": (32, 32, True), "fp8-row": (1, None, False),
                    "fp8-block128": (128, 128, False), "fp8-tensor": (None, None, False)}[recipe]
suffix = "_scale_inv" if recipe == "fp8-block128" else "_scale"

def decode_scales(name, shape):
    rows_, cols_ = rows or shape[0], cols or shape[1]
    blocks = (-(-shape[0] // rows_), -(-shape[1] // cols_))
    bits = raw(header_out, data_out, name)
    assert header_out[name]["dtype"] == ("F8_E8M0" if code else "F32")
    s = 2.0 ** (bits.astype(np.float64) - 127) if code else bits.view(np.float32).astype(np.float64)
    s = np.repeat(np.repeat(s.reshape(blocks), rows_, axis=0), cols_, axis=1)
    return s[: shape[0], : shape[1]]

quantized = [n for n in names if n + suffix in names]
assert quantized, "nothing was quantized"
worst = 0.0
for name in quantized:
    assert header_out[name]["dtype"] == "F8_E4M3"
    assert header_out[name]["shape"] == header_in[name]["shape"]
    x = decode_input(name)
    q = table[raw(header_out, data_out, name)].reshape(x.shape)
    s = decode_scales(name + suffix, x.shape)
    assert np.isfinite(q).all(), name
    error = np.abs(q * s - x)
    bound = np.maximum(np.abs(x) * 2.0**-4, 2.0**-10 * s) * (1 if code else 1 + 2.0**-20)
    assert (error <= bound).all(), (name, (error - bound).max())
    worst = max(worst, float(np.linalg.norm(error) / np.linalg.norm(x)))
for name in header_in:
    if name != "__metadata__" and name not in quantized:
        assert header_out[name]["dtype"] == header_in[name]["dtype"], name
        assert (raw(header_in, data_in, name) == raw(header_out, data_out, name)).all(), name
assert worst < 0.04, worst
print(f"{recipe}: {len(quantized)} weights, worst relative error {worst:.4f}")
)";

TEST_F(RealInput, QuantizedWeightsLoadAndDecodeWithinTheFormatsError) {
  const std::string source = environment("MXJIT_REAL_SAFETENSORS"), python = environment("MXJIT_PYTHON");
  if (source.empty()) GTEST_SKIP() << "MXJIT_REAL_SAFETENSORS names no file of real model weights";
  if (python.empty()) GTEST_SKIP() << "MXJIT_PYTHON names no Python with numpy and safetensors";
  write("check.py", check_script);
  for (const std::string recipe : {"mxfp8", "mxfp8-32x32", "fp8-row", "fp8-block128", "fp8-tensor"}) {
    const Ran ran =
        tool({"quantize", source, "out.safetensors", "--recipe", recipe, "--device", "cpu", "--json"});
    ASSERT_EQ(ran.status, 0) << recipe << ran.err;
    EXPECT_GT(ran.json()["quantized"].size(), 10U);
    EXPECT_LT(ran.json()["bytes_out"], ran.json()["bytes_in"]);
    const std::string command = "'" + python + "' '" + path("check.py").string() + "' '" + source + "' '" +
                                path("out.safetensors").string() + "' " + recipe + " 2>'" +
                                path("errors").string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << recipe << read("errors");
  }
}

// tools/real_weights_drill.sh; the real weights are for where there is a GPU.
TEST_F(RealInput, TheDrillComparesGpuAndCpuToTheByte) {
  const auto drill = [&](const std::string& program, const std::string& source) {
    const std::string command = "'" MXJIT_TESTS_DIR "/../tools/real_weights_drill.sh' '" + program + "' '" +
                                source + "' >'" + path("drill.log").string() + "' 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  };
  write("small.safetensors", tensor_file({{"a.weight", "BF16", {2, 32}, ones}}));
  const std::string small = path("small.safetensors").string(), real = environment("MXJIT_REAL_SAFETENSORS");
  EXPECT_EQ(drill(MXJIT_TOOL, has_gpu() && !real.empty() ? real : small), has_gpu() ? 0 : 3)
      << read("drill.log");
  EXPECT_NE(read("drill.log").find(has_gpu() ? "agree to the byte" : "nothing was compared"),
            std::string::npos)
      << read("drill.log");
  // A program that writes the name of the device.
  write("program", "#!/bin/sh\nprintf '%s' \"$7\" >\"$3\"\necho '{\"device\": \"cuda:0\"}'\n");
  fs::permissions(path("program"), fs::perms::owner_all);
  EXPECT_EQ(drill(path("program").string(), small), 1);
  EXPECT_NE(read("drill.log").find("differ"), std::string::npos) << read("drill.log");
}

}  // namespace
}  // namespace mxjit::test
