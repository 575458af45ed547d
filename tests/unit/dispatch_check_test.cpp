// What a quantize call may look like: every rule broken one at a time, from a call that is right.
#include "dispatch/quantize_check.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "dispatch/quantize_key.hpp"
#include "dispatch/run.hpp"
#include "mxjit/error.hpp"
#include "unit/on_stub.hpp"
#include "unit/refusal.hpp"

namespace mxjit::dispatch {
namespace {

using test::tensor;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// 100 x 200 bf16, both axes, plain mx scales, every buffer 1 MiB from the next.
QuantizeCall both() {
  QuantizeCall call;
  call.options.axes = {.row = true, .col = true};
  call.args.x = tensor(0x100000, DType::bf16, {100, 200});
  call.args.q_row = tensor(0x200000, DType::e4m3, {100, 200});
  call.args.s_row = tensor(0x300000, DType::e8m0, {100, 7});
  call.args.q_col = tensor(0x400000, DType::e4m3, {200, 100});
  call.args.s_col = tensor(0x500000, DType::e8m0, {200, 4});
  return call;
}

void check(const QuantizeCall& call) {
  check_options(call.options);
  check_quantize(call.options, call.args);
}

std::string error_of(const QuantizeCall& call, const std::string& argument) {
  return test::refusal(argument, [&] { check(call); });
}

TEST(QuantizeCheck, AcceptsRightCalls) {
  EXPECT_NO_THROW(check(both()));
  QuantizeCall blocked = both();
  blocked.options.scale_layout = ScaleLayout::blocked;
  blocked.args.s_row = tensor(0x300000, DType::u8, {128 * 8});
  blocked.args.s_col = tensor(0x500000, DType::u8, {256 * 4});
  EXPECT_NO_THROW(check(blocked));
  QuantizeCall pitched = both();
  pitched.args.x.pitch = 201;
  pitched.args.q_col.pitch = 333;
  EXPECT_NO_THROW(check(pitched));
  QuantizeCall tall = both();
  tall.options.block = {.rows = 32, .cols = 32};
  tall.args.s_row = tensor(0x300000, DType::e8m0, {4, 7});
  tall.args.s_col = tensor(0x500000, DType::e8m0, {7, 4});
  EXPECT_NO_THROW(check(tall));
  QuantizeCall batched = both();
  batched.args.x = tensor(0x100000, DType::bf16, {3, 100, 200});
  batched.args.q_row = tensor(0x200000, DType::e4m3, {3, 100, 200});
  batched.args.s_row = tensor(0x300000, DType::e8m0, {3, 100, 7});
  batched.args.q_col = tensor(0x400000, DType::e4m3, {3, 200, 100});
  batched.args.s_col = tensor(0x500000, DType::e8m0, {3, 200, 4});
  EXPECT_NO_THROW(check(batched));
}

TEST(QuantizeCheck, ATransposedInputChangesTheShapeOfXAlone) {
  QuantizeCall call = both();
  call.options.transposed_input = true;
  error_of(call, "q_row");
  call.args.x = tensor(0x100000, DType::bf16, {200, 100}, 101);
  EXPECT_NO_THROW(check(call));
  const QuantizeKey key = quantize_key(call.options, call.args);
  EXPECT_EQ(key.n, 200);
  EXPECT_EQ(key.m_bucket, 7);
  EXPECT_NE(key, quantize_key(both().options, both().args));
  call.args.x.pitch = 99;
  error_of(call, "x");
}

TEST(QuantizeCheck, AcceptsFloatScales) {
  QuantizeCall call = both();
  call.options.axes.col = false;
  call.args.q_col = call.args.s_col = {};
  call.options.scaling = Scaling::fp32;
  call.options.rounding = Rounding::none;
  call.options.block = {.kind = Block::Kind::row};
  call.args.s_row = tensor(0x300000, DType::fp32, {100});
  EXPECT_NO_THROW(check(call));
  call.options.block = {.kind = Block::Kind::tensor};
  call.args.s_row = tensor(0x300000, DType::fp32, {1});
  EXPECT_NE(error_of(call, "workspace").find("no tensor"), std::string::npos);
  call.args.workspace = tensor(0x600000, DType::u8, {512});
  EXPECT_NO_THROW(check(call));
  call.options.block = {.rows = 1, .cols = 128};
  call.args.s_row = tensor(0x300000, DType::fp32, {100, 2});
  EXPECT_NO_THROW(check(call));
  call.options.scale_layout = ScaleLayout::mn_major;
  call.args.s_row = tensor(0x300000, DType::fp32, {2, 100});
  EXPECT_NO_THROW(check(call));
  call.args.s_row.dtype = DType::e8m0;
  error_of(call, "s_row");
  call.options.block = {.kind = Block::Kind::k};  // of GEMM operands alone
  error_of(call, "options.block");
}

// Float scales of rows and columns, which take a workspace.
QuantizeCall rows_and_columns() {
  QuantizeCall call = both();
  call.options.scaling = Scaling::fp32;
  call.options.rounding = Rounding::none;
  call.options.block = {.kind = Block::Kind::row};
  call.args.s_row = tensor(0x300000, DType::fp32, {100});
  call.args.s_col = tensor(0x500000, DType::fp32, {200});
  call.args.workspace = tensor(0x600000, DType::u8, {512 + 1024 + 256});
  return call;
}

TEST(QuantizeCheck, FloatScalesOfColumnsTakeAWorkspace) {
  EXPECT_NO_THROW(check(rows_and_columns()));
  const std::vector<std::pair<const char*, std::function<void(Tensor&)>>> broken = {
      {"(1791)", [](Tensor& w) { w.shape[0] = 1791; }},
      {"0x600080", [](Tensor& w) { w.data = at(0x600080); }},
      {"null", [](Tensor& w) { w.data = nullptr; }},
      {"i8", [](Tensor& w) { w.dtype = DType::i8; }},
      {"rank 2", [](Tensor& w) { w.rank = 2; }},
      {"overlap", [](Tensor& w) { w.data = at(0x500000); }}};
  for (const auto& [says, change] : broken) {
    QuantizeCall call = rows_and_columns();
    change(call.args.workspace);
    const std::string message = error_of(call, "workspace");
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
  QuantizeCall rows = rows_and_columns();
  rows.options.axes.col = false;
  rows.args.q_col = rows.args.s_col = rows.args.workspace = {};
  EXPECT_NO_THROW(check(rows)) << "rows alone take none";
}

TEST(QuantizeCheck, TheWorkspaceGrowsWithTheInputAndTheGroups) {
  QuantizeOptions options = rows_and_columns().options;
  const auto size = [&](std::vector<std::int64_t> shape) {
    return workspace_size(options, tensor(0, DType::bf16, std::move(shape)));
  };
  // A word a row and a column; a word for the grid and one for 128 columns.
  EXPECT_EQ(size({100, 200}), 512U + 1024U + 256U);
  EXPECT_EQ(size({3, 100, 200}), 1280U + 2560U + 256U);
  EXPECT_EQ(size({0, 0}), 256U);
  EXPECT_EQ(size({0, 128 * 64}), 4U * 128 * 64 + 512U);
  options.groups = {.count = 5, .alignment = 1};
  EXPECT_EQ(size({100, 200}), 512U + 4096U + 256U);
  options.groups = {};
  options.axes.row = false;
  EXPECT_EQ(size({100, 200}), 1024U + 256U);
  options.transposed_input = true;
  EXPECT_EQ(size({200, 100}), 0U) << "a column lies along a row of memory";
  options.block = {.kind = Block::Kind::tensor};
  EXPECT_EQ(size({0, 200}), 512U);
  EXPECT_EQ(size({32 * 8, 128 * 8}), 256U + 256U) << "a word for each tile of 32 rows and 128 columns";
  EXPECT_EQ(size({32 * 8 + 1, 128 * 8}), 512U + 256U);
  EXPECT_EQ(size({9, 32 * 8, 128 * 8}), 2304U + 256U);
  EXPECT_EQ(size({1024, 1, 1}), 4096U + 256U);
  EXPECT_EQ(size({5, 1 << 20, 1 << 20}), 4096U + 256U) << "or for 1024";
  EXPECT_EQ(size({std::int64_t{1} << 62, 0, 0}), 4096U + 256U);
  options.pre = Pre::rmsnorm;
  EXPECT_EQ(size({5, 1 << 10, 1 << 10}), 256U + 8U * 5 * 1024 + 256U) << "one after RMSNorm";
  options.pre = Pre::none;
  options.block = {.rows = 1, .cols = 128};
  EXPECT_EQ(size({100, 200}), 0U);
  EXPECT_EQ(workspace_size(QuantizeOptions{}, tensor(0, DType::bf16, {100, 200})), 0U);
  EXPECT_THROW(size({100}), Error);
  options.rounding = Rounding::even;
  EXPECT_THROW(size({100, 200}), Error);
}

TEST(QuantizeCheck, GroupsOfColumnsHaveScalesOfTheirOwn) {
  QuantizeCall call = rows_and_columns();
  call.options.groups = {.count = 3, .alignment = 1};
  call.args.offsets = tensor(0x700000, DType::i32, {3});
  call.args.workspace.shape[0] = 512 + 2560 + 256;
  error_of(call, "s_col");
  call.args.s_col = tensor(0x500000, DType::fp32, {3, 200});
  EXPECT_NO_THROW(check(call));
  call.options.block = {.kind = Block::Kind::tensor};
  error_of(call, "options.groups");
}

TEST(QuantizeCheck, TheCapIsANumberAndOfFloatScales) {
  QuantizeCall call = rows_and_columns();
  for (const float cap : {0.0F, 1200.0F}) {
    call.args.amax_cap = cap;
    EXPECT_NO_THROW(check(call));
  }
  for (const float cap : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    call.args.amax_cap = cap;
    error_of(call, "amax_cap");
  }
  call = both();
  call.args.amax_cap = 1200.0F;
  error_of(call, "amax_cap");
}

TEST(QuantizeCheck, AcceptsEmptyTensorsWithNullPointers) {
  QuantizeCall call = both();
  call.args.x = tensor(0, DType::bf16, {0, 200});
  call.args.q_row = tensor(0, DType::e4m3, {0, 200});
  call.args.s_row = tensor(0, DType::e8m0, {0, 7});
  call.args.q_col = tensor(0, DType::e4m3, {200, 0});
  call.args.s_col = tensor(0, DType::e8m0, {200, 0});
  EXPECT_NO_THROW(check(call));
}

TEST(QuantizeCheck, RefusesOptionsThatDoNotBelongTogether) {
  const auto with = [](const std::function<void(QuantizeOptions&)>& change) {
    QuantizeCall call = both();
    change(call.options);
    return call;
  };
  error_of(with([](auto& o) { o.format = DType::bf16; }), "options.format");
  error_of(with([](auto& o) { o.block = {.rows = 1, .cols = 64}; }), "options.block");
  error_of(with([](auto& o) { o.block = {.kind = Block::Kind::row}; }), "options.block");
  error_of(with([](auto& o) { o.rounding = Rounding::pow2; }), "options.rounding");
  error_of(with([](auto& o) { o.scale_layout = ScaleLayout::mn_major; }), "options.scale_layout");
  error_of(with([](auto& o) { o.axes = {.row = false, .col = false}; }), "options.axes");
  error_of(with([](auto& o) { o.scaling = Scaling::fp32; }), "options.block");
  error_of(with([](auto& o) {
             o.scaling = Scaling::fp32;
             o.block = {.rows = 128, .cols = 128};
           }),
           "options.rounding");
}

struct Broken {
  const char* argument;
  const char* says;  // part of the message
  std::function<void(QuantizeArgs&)> change;
};

TEST(QuantizeCheck, NamesTheArgumentAndWhatCame) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max() / 4;
  const std::vector<Broken> table = {
      {"x", "fp64", [](auto& a) { a.x.dtype = DType::fp64; }},
      {"x", "rank 1", [](auto& a) { a.x.rank = 1; }},
      {"x", "rank 4", [](auto& a) { a.x.rank = 4; }},
      {"x", "rank -7", [](auto& a) { a.x.rank = -7; }},
      {"x", "(-1, 200)", [](auto& a) { a.x.shape[0] = -1; }},
      {"x", "(100, -200)", [](auto& a) { a.x.shape[1] = -200; }},
      {"x", "null", [](auto& a) { a.x.data = nullptr; }},
      {"x", "pitch 199", [](auto& a) { a.x.pitch = 199; }},
      {"x", "pitch -1", [](auto& a) { a.x.pitch = -1; }},
      {"x", "0x100001", [](auto& a) { a.x.data = at(0x100001); }},
      {"x", "63 bits", [](auto& a) { a.x.shape[0] = huge; }},
      {"x", "63 bits", [](auto& a) { a.x.pitch = huge; }},
      {"x", "address space", [](auto& a) { a.x.data = at(~std::uintptr_t{0xFFF}); }},
      {"q_row", "e5m2", [](auto& a) { a.q_row.dtype = DType::e5m2; }},
      {"q_row", "(100, 201)", [](auto& a) { a.q_row.shape[1] = 201; }},
      {"q_row", "rank -1", [](auto& a) { a.q_row.rank = -1; }},
      {"q_row", "rank 9", [](auto& a) { a.q_row.rank = 9; }},
      {"q_row", "null", [](auto& a) { a.q_row.data = nullptr; }},
      {"q_row", "pitch 100", [](auto& a) { a.q_row.pitch = 100; }},
      {"s_row", "fp32", [](auto& a) { a.s_row.dtype = DType::fp32; }},
      {"s_row", "(100, 6)", [](auto& a) { a.s_row.shape[1] = 6; }},
      {"s_row", "(700)", [](auto& a) { a.s_row = tensor(0x300000, DType::u8, {700}); }},
      {"s_row", "pitch 8", [](auto& a) { a.s_row.pitch = 8; }},
      {"s_row", "null", [](auto& a) { a.s_row.data = nullptr; }},
      {"q_col", "(100, 200)",
       [](auto& a) {
         a.q_col = tensor(0x400000, DType::e4m3, {100, 200});
       }},
      {"q_col", "null", [](auto& a) { a.q_col.data = nullptr; }},
      {"s_col", "(200, 3)", [](auto& a) { a.s_col.shape[1] = 3; }},
      {"s_col", "null", [](auto& a) { a.s_col.data = nullptr; }},
      {"q_row", "overlap", [](auto& a) { a.q_row.data = a.x.data; }},
      {"q_row", "overlap", [](auto& a) { a.q_row.data = at(0x100000 + 2 * 100 * 200 - 1); }},
      {"s_row", "overlap", [](auto& a) { a.s_row.data = a.q_row.data; }},
      {"q_col", "overlap", [](auto& a) { a.q_col.data = a.q_row.data; }},
      {"s_col", "overlap", [](auto& a) { a.s_col.data = at(0x300000 + 699); }},
  };
  for (const Broken& broken : table) {
    QuantizeCall call = both();
    broken.change(call.args);
    const std::string message = error_of(call, broken.argument);
    EXPECT_NE(message.find(broken.says), std::string::npos) << message << "\nwithout: " << broken.says;
  }
}

TEST(QuantizeCheck, RefusesTensorsOfAnAxisThatIsNotAskedFor) {
  QuantizeCall call = both();
  call.options.axes.col = false;
  error_of(call, "q_col");
  call.args.q_col = {};
  error_of(call, "s_col");
  call.args.s_col = {};
  EXPECT_NO_THROW(check(call));
}

// x has two columns, or in memory two rows, for each of the outputs'.
QuantizeCall with_swiglu() {
  QuantizeCall call = both();
  call.options.pre = Pre::swiglu;
  call.options.emit_high = true;
  call.args.x = tensor(0x100000, DType::bf16, {100, 400});
  call.args.y = tensor(0x800000, DType::bf16, {100, 200});
  return call;
}

TEST(QuantizeCheck, SwigluTakesTwoColumnsForOne) {
  QuantizeCall call = with_swiglu();
  EXPECT_NO_THROW(check(call));
  call.args.swiglu_limit = 7.0;
  call.options.pre = Pre::swiglu_interleaved;
  EXPECT_NO_THROW(check(call));
  call.options.transposed_input = true;
  error_of(call, "q_row");
  call.args.x = tensor(0x100000, DType::bf16, {400, 100});
  EXPECT_NO_THROW(check(call));
  call.args.x = tensor(0x100000, DType::bf16, {401, 100});
  EXPECT_NE(error_of(call, "x").find("even"), std::string::npos);
  call.options.pre = static_cast<Pre>(4);
  error_of(call, "options.pre");
}

TEST(QuantizeCheck, ValuesOfSwigluAreNumbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double limit : {0.0, -1.0, infinity, std::numeric_limits<double>::quiet_NaN()}) {
    QuantizeCall call = with_swiglu();
    call.args.swiglu_limit = limit;
    error_of(call, "swiglu_limit");
    call.options.pre = Pre::none;
    error_of(call, "q_row");  // who does not ask for it may leave anything there
  }
  QuantizeCall call = with_swiglu();
  call.args.swiglu_alpha = infinity;
  error_of(call, "swiglu_alpha");
}

TEST(QuantizeCheck, TheValueBeforeQuantizationIsATensorAsAnyOther) {
  const std::vector<Broken> table = {
      {"y", "fp32", [](auto& a) { a.y.dtype = DType::fp32; }},
      {"y", "(100, 400)", [](auto& a) { a.y.shape[1] = 400; }},
      {"y", "null", [](auto& a) { a.y.data = nullptr; }},
      {"y", "pitch 199", [](auto& a) { a.y.pitch = 199; }},
      {"y", "overlap", [](auto& a) { a.y.data = a.x.data; }},
      {"weight", "rmsnorm", [](auto& a) { a.weight = tensor(0x900000, DType::bf16, {200}); }},
  };
  for (const Broken& broken : table) {
    QuantizeCall call = with_swiglu();
    broken.change(call.args);
    const std::string message = error_of(call, broken.argument);
    EXPECT_NE(message.find(broken.says), std::string::npos) << message;
  }
  QuantizeCall call = with_swiglu();
  call.options.emit_high = false;
  EXPECT_NE(error_of(call, "y").find("emit_high"), std::string::npos);
}

TEST(QuantizeCheck, RmsNormTakesAWeightAColumn) {
  QuantizeCall call = both();
  call.options.pre = Pre::rmsnorm;
  error_of(call, "weight");
  call.args.weight = tensor(0x900000, DType::bf16, {200});
  // Two words a row, and a word for the grid, each line of tiles and each pass.
  EXPECT_NE(error_of(call, "workspace").find("(1280)"), std::string::npos);
  call.args.workspace = tensor(0xA00000, DType::u8, {1280});
  EXPECT_NO_THROW(check(call));
  call.args.weight.dtype = DType::fp32;
  error_of(call, "weight");
  call.args.weight = tensor(0x900000, DType::bf16, {199});
  error_of(call, "weight");
  call.args.weight = tensor(0x900000, DType::bf16, {200});
  call.args.rms_eps = -1.0;
  error_of(call, "rms_eps");
}

TEST(QuantizeCheck, TouchingAndInterleavedTensorsDoNotOverlap) {
  QuantizeCall call = both();
  call.args.q_row.data = at(0x100000 + 2 * 100 * 200);
  EXPECT_NO_THROW(check(call)) << "q_row starts where x ends";
  // q_row and q_col as columns of one pitched matrix: 200 and 100 of every 300 bytes.
  call = both();
  call.args.x = tensor(0x100000, DType::bf16, {100, 100});
  call.args.q_row = tensor(0x200000, DType::e4m3, {100, 100}, 200);
  call.args.s_row = tensor(0x300000, DType::e8m0, {100, 4});
  call.args.q_col = tensor(0x200000 + 100, DType::e4m3, {100, 100}, 200);
  call.args.s_col = tensor(0x500000, DType::e8m0, {100, 4});
  EXPECT_NO_THROW(check(call));
  call.args.q_col.data = at(0x200000 + 99);
  error_of(call, "q_col");
  call.args.q_col.data = at(0x200000 + 101);
  error_of(call, "q_col");  // its rows run into the next row of q_row
}

TEST(QuantizeKey, ChangesWithWhatSelectsAKernelOnly) {
  const auto key = [](const QuantizeCall& call) { return quantize_key(call.options, call.args); };
  const QuantizeKey base = key(both());
  QuantizeCall same = both();
  same.args.x.data = at(0x900000);
  same.args.swiglu_alpha = 1.702;
  same.args.swiglu_limit = 7.0;  // without SwiGLU
  EXPECT_EQ(key(same), base);
  std::vector<std::function<void(QuantizeCall&)>> changes = {
      [](QuantizeCall& c) { c.options.format = DType::e5m2; },
      [](QuantizeCall& c) { c.options.scaling = Scaling::fp32; },
      [](QuantizeCall& c) { c.options.block.cols = 128; },
      [](QuantizeCall& c) { c.options.block.rows = 32; },
      [](QuantizeCall& c) { c.options.block.kind = Block::Kind::row; },
      [](QuantizeCall& c) { c.options.rounding = Rounding::floor; },
      [](QuantizeCall& c) { c.options.scale_layout = ScaleLayout::blocked; },
      [](QuantizeCall& c) { c.options.axes.col = false; },
      [](QuantizeCall& c) { c.options.axes.row = false; },
      [](QuantizeCall& c) { c.args.x.dtype = DType::fp32; },
      [](QuantizeCall& c) { c.args.x.shape[1] = 208; },
      [](QuantizeCall& c) { c.options.emit_high = true; },
      [](QuantizeCall& c) { c.options.pre = Pre::swiglu; },
      [](QuantizeCall& c) { c.options.pre = Pre::swiglu_interleaved; },
      [](QuantizeCall& c) { c.options.pre = Pre::rmsnorm; },
      [](QuantizeCall& c) {
        c.options.pre = Pre::swiglu;
        c.args.swiglu_limit = 7.0;
      },
  };
  std::vector<QuantizeKey> keys = {base};
  for (const auto& change : changes) {
    QuantizeCall call = both();
    change(call);
    for (const QuantizeKey& other : keys) EXPECT_NE(key(call), other);
    keys.push_back(key(call));
  }
}

}  // namespace
}  // namespace mxjit::dispatch
