// Real model weights through mxjit quantize, read back by other people's code.
#include <cstdlib>

#include "cli/tensor_file.hpp"
#include "cli/tool.hpp"

namespace mxjit::test {
namespace {

using RealInput = ToolTest;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Loads both files with the safetensors package, decodes with numpy alone and checks every element. MXFP8
// with round-up scales keeps 3 fraction bits: half a step is 2^-4 of a normal value. Below 2^-6 of FP8
// (subnormal) half a step is 2^-10 times the scale.
const char* const check_script = R"(
import json, sys
import numpy as np
from safetensors import safe_open

def load(path):
    import struct
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    return header, data

source, result = sys.argv[1:3]
with safe_open(result, framework="np") as f:
    names, metadata = set(f.keys()), f.metadata()
header_in, data_in = load(source)
header_out, data_out = load(result)
assert names == {n for n in header_out if n != "__metadata__"}
assert json.loads(metadata["quantization_config"])["quant_method"] == "mxfp8"

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

quantized = [n for n in names if n + "_scale" in names]
assert quantized, "nothing was quantized"
worst = 0.0
for name in quantized:
    assert header_out[name]["dtype"] == "F8_E4M3" and header_out[name + "_scale"]["dtype"] == "F8_E8M0"
    assert header_out[name]["shape"] == header_in[name]["shape"]
    x = decode_input(name)
    q = table[raw(header_out, data_out, name)].reshape(x.shape)
    s = 2.0 ** (raw(header_out, data_out, name + "_scale").astype(np.float64) - 127)
    s = np.repeat(s.reshape(header_out[name + "_scale"]["shape"]), 32, axis=-1)[..., : x.shape[-1]]
    error = np.abs(q * s - x)
    bound = np.maximum(np.abs(x) * 2.0**-4, 2.0**-10 * s)
    assert np.isfinite(q).all(), name
    assert (error <= bound).all(), (name, (error - bound).max())
    worst = max(worst, float(np.linalg.norm(error) / np.linalg.norm(x)))
for name in header_in:
    if name != "__metadata__" and name not in quantized:
        assert header_out[name]["dtype"] == header_in[name]["dtype"], name
        assert (raw(header_in, data_in, name) == raw(header_out, data_out, name)).all(), name
assert worst < 0.04, worst
print(f"{len(quantized)} weights, worst relative error {worst:.4f}")
)";

TEST_F(RealInput, QuantizedWeightsLoadAndDecodeWithinTheFormatsError) {
  const std::string source = environment("MXJIT_REAL_SAFETENSORS"), python = environment("MXJIT_PYTHON");
  if (source.empty()) GTEST_SKIP() << "MXJIT_REAL_SAFETENSORS names no file of real model weights";
  if (python.empty()) GTEST_SKIP() << "MXJIT_PYTHON names no Python with numpy and safetensors";
  const Ran ran =
      tool({"quantize", source, "out.safetensors", "--recipe", "mxfp8", "--device", "cpu", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_GT(ran.json()["quantized"].size(), 10U);
  EXPECT_LT(ran.json()["bytes_out"], ran.json()["bytes_in"]);

  write("check.py", check_script);
  const std::string command = "'" + python + "' '" + path("check.py").string() + "' '" + source + "' '" +
                              path("out.safetensors").string() + "' 2>'" + path("errors").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << read("errors");
}

TEST_F(RealInput, GpuAndCpuAgreeToTheByte) {
  const std::string source = environment("MXJIT_REAL_SAFETENSORS");
  if (source.empty()) GTEST_SKIP() << "MXJIT_REAL_SAFETENSORS names no file of real model weights";
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU here";
  ASSERT_EQ(tool({"quantize", source, "cpu.safetensors", "--recipe", "mxfp8", "--device", "cpu"}).status, 0);
  const Ran ran =
      tool({"quantize", source, "gpu.safetensors", "--recipe", "mxfp8", "--device", "cuda", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.json()["device"], "cuda:0");
  EXPECT_TRUE(read("cpu.safetensors") == read("gpu.safetensors"));
}

}  // namespace
}  // namespace mxjit::test
