// Model configurations: the dimensions of published models, and what a bad configuration is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "mxjit/error.hpp"
#include "problem/model.hpp"

namespace mxjit::problem {
namespace {

using nlohmann::json;

json llama3_8b() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", 4096},
          {"intermediate_size", 14336},
          {"num_hidden_layers", 32},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 8},
          {"vocab_size", 128256}};
}

json scout() {
  return {{"architectures", {"Llama4ForConditionalGeneration"}},
          {"model_type", "llama4"},
          {"vision_config", {{"hidden_size", 1408}}},
          {"text_config",
           {{"hidden_size", 5120},
            {"intermediate_size", 8192},
            {"intermediate_size_mlp", 16384},
            {"num_hidden_layers", 48},
            {"num_attention_heads", 40},
            {"num_key_value_heads", 8},
            {"head_dim", 128},
            {"num_local_experts", 16},
            {"num_experts_per_tok", 1},
            {"interleave_moe_layer_step", 1},
            {"moe_layers", nullptr}}}};
}

json deepseek_v3() {
  return {{"architectures", {"DeepseekV3ForCausalLM"}},
          {"hidden_size", 7168},
          {"intermediate_size", 18432},
          {"moe_intermediate_size", 2048},
          {"num_attention_heads", 128},
          {"n_routed_experts", 256},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 8},
          {"first_k_dense_replace", 3},
          {"q_lora_rank", 1536},
          {"kv_lora_rank", 512},
          {"qk_rope_head_dim", 64},
          {"qk_nope_head_dim", 128},
          {"v_head_dim", 128}};
}

json mixtral() {
  return {{"architectures", {"MixtralForCausalLM"}},
          {"hidden_size", 4096},
          {"intermediate_size", 14336},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 8},
          {"num_local_experts", 8},
          {"num_experts_per_tok", 2}};
}

json qwen3_moe() {
  return {{"architectures", {"Qwen3MoeForCausalLM"}},
          {"hidden_size", 2048},
          {"intermediate_size", 6144},
          {"moe_intermediate_size", 768},
          {"num_attention_heads", 32},
          {"num_key_value_heads", 4},
          {"head_dim", 128},
          {"num_experts", 128},
          {"num_experts_per_tok", 8},
          {"mlp_only_layers", json::array()}};
}

json gpt_oss() {
  return {{"architectures", {"GptOssForCausalLM"}},
          {"hidden_size", 2880},
          {"intermediate_size", 2880},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 8},
          {"head_dim", 64},
          {"num_local_experts", 32},
          {"num_experts_per_tok", 4},
          {"attention_bias", true},
          {"swiglu_limit", 7.0}};
}

json minimax_m3() {
  return {{"architectures", {"MiniMaxM3SparseForConditionalGeneration"}},
          {"text_config",
           {{"hidden_size", 6144},
            {"intermediate_size", 3072},
            {"dense_intermediate_size", 12288},
            {"shared_intermediate_size", 3072},
            {"num_attention_heads", 64},
            {"num_key_value_heads", 4},
            {"head_dim", 128},
            {"num_local_experts", 128},
            {"num_experts_per_tok", 4},
            {"moe_layer_freq", {0, 0, 0, 1, 1}}}}};
}

json glm5() {
  return {{"architectures", {"GlmMoeDsaForCausalLM"}},
          {"hidden_size", 6144},
          {"intermediate_size", 12288},
          {"moe_intermediate_size", 2048},
          {"num_attention_heads", 64},
          {"n_routed_experts", 256},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 8},
          {"first_k_dense_replace", 3},
          {"q_lora_rank", 2048},
          {"kv_lora_rank", 512},
          {"qk_rope_head_dim", 64},
          {"qk_nope_head_dim", 192},
          {"v_head_dim", 256},
          {"index_head_dim", 128},
          {"index_n_heads", 32}};
}

json deepseek_v4() {
  return {{"architectures", {"DeepseekV4ForCausalLM"}},
          {"hidden_size", 4096},
          {"moe_intermediate_size", 2048},
          {"num_attention_heads", 64},
          {"head_dim", 512},
          {"q_lora_rank", 1024},
          {"o_lora_rank", 1024},
          {"o_groups", 8},
          {"n_routed_experts", 256},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 6},
          {"swiglu_limit", 10.0}};
}

ModelProblems derive(const json& config, std::int64_t tp = 1, std::int64_t ep = 1) {
  ModelOptions options;
  options.tp = tp;
  options.ep = ep;
  return model_problems(config.dump(), options);
}

const Problem& find(const ModelProblems& model, const std::string& name) {
  const auto found = std::find_if(model.problems.begin(), model.problems.end(),
                                  [&](const ModelProblem& problem) { return problem.name == name; });
  if (found == model.problems.end()) throw std::runtime_error("no problem " + name);
  return found->problem;
}

// Features out and in of a product: (N, K).
std::pair<std::int64_t, std::int64_t> dims(const ModelProblems& model, const std::string& name) {
  const Shape& b = std::get<Gemm>(find(model, name).op).b.tensor.shape;
  return {b[b.size() - 2].max, b.back().max};
}

using Dims = std::pair<std::int64_t, std::int64_t>;

TEST(ProblemModel, Llama3) {
  const ModelProblems model = derive(llama3_8b());
  EXPECT_EQ(model.architecture, "LlamaForCausalLM");
  EXPECT_EQ(dims(model, "layers.*.self_attn.qkv_proj"), Dims(6144, 4096));
  EXPECT_EQ(dims(model, "layers.*.self_attn.o_proj"), Dims(4096, 4096));
  EXPECT_EQ(dims(model, "layers.*.mlp.gate_up_proj"), Dims(28672, 4096));
  EXPECT_EQ(dims(model, "layers.*.mlp.down_proj"), Dims(4096, 14336));

  const Quantize input = std::get<Quantize>(find(model, "layers.*.mlp.down_proj.input").op);
  EXPECT_EQ(input.input.shape, (Shape{Extent(1, 8192), 14336}));
  EXPECT_EQ(input.axes, (Axes{true, false}));
  EXPECT_EQ(input.recipe.scale_layout, ScaleLayout::blocked);
  const Quantize weight = std::get<Quantize>(find(model, "layers.*.mlp.down_proj.weight").op);
  EXPECT_EQ(weight.input.shape, (Shape{4096, 14336}));
  const Quantize train = std::get<Quantize>(find(model, "layers.*.mlp.down_proj.input.train").op);
  EXPECT_EQ(train.axes, (Axes{true, true}));
  EXPECT_EQ(dims(model, "layers.*.mlp.down_proj.dgrad"), Dims(14336, 4096));
  const Gemm wgrad = std::get<Gemm>(find(model, "layers.*.mlp.down_proj.wgrad").op);
  EXPECT_EQ(wgrad.d.tensor.shape, (Shape{4096, 14336}));
  EXPECT_EQ(wgrad.a.tensor.shape, (Shape{4096, Extent(1, 8192)}));

  // 70B: 8 ways, one key-value head a rank.
  json big = llama3_8b();
  big["hidden_size"] = 8192;
  big["intermediate_size"] = 28672;
  big["num_attention_heads"] = 64;
  EXPECT_EQ(dims(derive(big), "layers.*.self_attn.qkv_proj"), Dims(10240, 8192));
  EXPECT_EQ(dims(derive(big, 8), "layers.*.self_attn.qkv_proj"), Dims(1280, 8192));
  EXPECT_EQ(dims(derive(big, 8), "layers.*.self_attn.o_proj"), Dims(8192, 1024));
  EXPECT_EQ(dims(derive(big, 8), "layers.*.mlp.gate_up_proj"), Dims(7168, 8192));
  EXPECT_EQ(dims(derive(big, 8), "layers.*.mlp.down_proj"), Dims(8192, 3584));
  // More ranks than key-value heads: each is held by two ranks.
  EXPECT_EQ(dims(derive(big, 16), "layers.*.self_attn.qkv_proj"), Dims((4 + 2) * 128, 8192));
}

TEST(ProblemModel, Llama4Scout) {
  const ModelProblems whole = derive(scout());
  EXPECT_EQ(dims(whole, "layers.*.self_attn.qkv_proj"), Dims(7168, 5120));
  EXPECT_EQ(dims(whole, "layers.*.feed_forward.experts.gate_up_proj"), Dims(16384, 5120));
  EXPECT_EQ(dims(whole, "layers.*.feed_forward.experts.down_proj"), Dims(5120, 8192));

  const ModelProblems model = derive(scout(), 8);
  EXPECT_EQ(model.architecture, "Llama4ForConditionalGeneration");
  EXPECT_EQ(dims(model, "layers.*.self_attn.qkv_proj"), Dims(896, 5120));
  EXPECT_EQ(dims(model, "layers.*.self_attn.o_proj"), Dims(5120, 640));
  EXPECT_EQ(dims(model, "layers.*.feed_forward.experts.gate_up_proj"), Dims(2048, 5120));
  EXPECT_EQ(dims(model, "layers.*.feed_forward.experts.down_proj"), Dims(5120, 1024));
  EXPECT_EQ(dims(model, "layers.*.feed_forward.shared_expert.gate_up_proj"), Dims(2048, 5120));

  const Moe moe = std::get<Moe>(find(model, "layers.*.feed_forward.experts").op);
  EXPECT_EQ(moe.tokens, Extent(1, 8192));
  EXPECT_EQ(moe.hidden, Extent(5120));
  EXPECT_EQ(moe.intermediate, Extent(1024));
  EXPECT_EQ(moe.experts, 16);
  EXPECT_EQ(moe.local_count, 16);
  EXPECT_EQ(moe.top_k, 1);
  EXPECT_TRUE(moe.weight_on_input);
  const Gemm grouped = std::get<Gemm>(find(model, "layers.*.feed_forward.experts.gate_up_proj").op);
  EXPECT_EQ(grouped.groups, (GemmGroups{GemmGroupKind::m, 16}));
  const Gemm wgrad = std::get<Gemm>(find(model, "layers.*.feed_forward.experts.gate_up_proj.wgrad").op);
  EXPECT_EQ(wgrad.d.tensor.shape, (Shape{16, 2048, 5120}));
  const Quantize train =
      std::get<Quantize>(find(model, "layers.*.feed_forward.experts.down_proj.grad.train").op);
  EXPECT_EQ(train.groups, (MGroups{16, 128}));
  EXPECT_EQ(train.input.shape.back(), Extent(5120));
  EXPECT_THROW(find(model, "layers.*.feed_forward.gate_up_proj"),
               std::runtime_error);  // every layer has experts

  const ModelProblems split = derive(scout(), 1, 4);
  EXPECT_EQ(std::get<Moe>(find(split, "layers.*.feed_forward.experts").op).local_count, 4);
  EXPECT_EQ(std::get<Moe>(find(split, "layers.*.feed_forward.experts").op).experts, 16);

  json text = scout()["text_config"];
  text["architectures"] = {"Llama4ForCausalLM"};
  EXPECT_EQ(dims(derive(text, 8), "layers.*.self_attn.qkv_proj"), Dims(896, 5120));
  // Maverick: every second layer is dense.
  text["interleave_moe_layer_step"] = 2;
  EXPECT_EQ(dims(derive(text, 8), "layers.*.feed_forward.gate_up_proj"), Dims(4096, 5120));
}

TEST(ProblemModel, OtherFamilies) {
  ModelProblems model = derive(deepseek_v3());
  EXPECT_EQ(dims(model, "layers.*.self_attn.qkv_a_proj"), Dims(2112, 7168));
  EXPECT_EQ(dims(model, "layers.*.self_attn.q_a_proj"), Dims(1536, 7168));
  EXPECT_EQ(dims(model, "layers.*.self_attn.kv_a_proj_with_mqa"), Dims(576, 7168));
  EXPECT_EQ(dims(model, "layers.*.self_attn.q_b_proj"), Dims(24576, 1536));
  EXPECT_EQ(dims(model, "layers.*.self_attn.kv_b_proj"), Dims(32768, 512));
  EXPECT_EQ(dims(model, "layers.*.self_attn.o_proj"), Dims(7168, 16384));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(4096, 7168));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(7168, 2048));
  EXPECT_EQ(dims(model, "layers.*.mlp.shared_experts.down_proj"), Dims(7168, 2048));
  EXPECT_EQ(dims(model, "layers.*.mlp.down_proj"), Dims(7168, 18432));

  model = derive(mixtral());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(28672, 4096));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(4096, 14336));

  model = derive(qwen3_moe());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(1536, 2048));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(2048, 768));
  EXPECT_EQ(dims(model, "layers.*.self_attn.qkv_proj"), Dims(5120, 2048));
  EXPECT_THROW(find(model, "layers.*.mlp.gate_up_proj"), std::runtime_error);

  model = derive(gpt_oss());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(5760, 2880));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(2880, 2880));
  const Moe oss = std::get<Moe>(find(model, "layers.*.mlp.experts").op);
  EXPECT_EQ(oss.activation, (Swiglu{.interleave = true, .alpha = 1.702, .limit = 7.0}));
  EXPECT_EQ(std::get<Gemm>(find(model, "layers.*.self_attn.o_proj").op).bias, DType::bf16);

  model = derive(minimax_m3());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(6144, 6144));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(6144, 3072));
  EXPECT_EQ(dims(model, "layers.*.mlp.gate_up_proj"), Dims(24576, 6144));

  model = derive(glm5());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(4096, 6144));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(6144, 2048));
  EXPECT_EQ(dims(model, "layers.*.self_attn.indexer.wq_b"), Dims(4096, 2048));

  model = derive(deepseek_v4());
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.gate_up_proj"), Dims(4096, 4096));
  EXPECT_EQ(dims(model, "layers.*.mlp.experts.down_proj"), Dims(4096, 2048));
  EXPECT_EQ(std::get<Gemm>(find(model, "layers.*.self_attn.o_a_proj").op).b.tensor.shape,
            (Shape{8, 1024, 4096}));
}

TEST(ProblemModel, EveryDerivedProblemIsAProblemFile) {
  for (const json& config : {llama3_8b(), scout(), deepseek_v3(), mixtral(), qwen3_moe(), gpt_oss(),
                             minimax_m3(), glm5(), deepseek_v4()}) {
    for (const bool blocks : {false, true}) {
      ModelOptions options;
      options.ep = config.contains("n_routed_experts") ? 8 : 1;
      if (blocks) {  // 128-blocks: activations in rows, weights in tiles
        options.activations.scaling = Scaling::fp32;
        options.activations.block.cols = 128;
        options.activations.rounding = Rounding::none;
        options.activations.scale_layout = ScaleLayout::plain;
        options.weights = options.activations;
        options.weights.block.rows = 128;
      }
      std::set<std::string> names;
      for (const ModelProblem& problem : model_problems(config.dump(), options).problems) {
        EXPECT_TRUE(names.insert(problem.name).second) << problem.name;
        EXPECT_EQ(problem.problem.name, problem.name);
        EXPECT_EQ(parse(print(problem.problem)), problem.problem);
      }
      EXPECT_GE(names.size(), 16U);
    }
  }
}

TEST(ProblemModel, InferenceAloneHasNoBackwardPass) {
  ModelOptions options;
  options.training = false;
  options.max_tokens = 512;
  const ModelProblems model = model_problems(llama3_8b().dump(), options);
  EXPECT_EQ(model.problems.size(), 4U * 3U);
  EXPECT_EQ(std::get<Quantize>(find(model, "layers.*.mlp.down_proj.input").op).input.shape[0],
            Extent(1, 512));
}

void expect_refused(const json& config, const ModelOptions& options, const std::string& argument,
                    const std::string& fragment) {
  try {
    (void)model_problems(config.dump(), options);
    FAIL() << "accepted: " << config.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.argument(), argument) << error.what();
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

ModelOptions ranks(std::int64_t tp, std::int64_t ep = 1) {
  ModelOptions options;
  options.tp = tp;
  options.ep = ep;
  return options;
}

TEST(ProblemModel, RanksThatDoNotDivideNameTheField) {
  expect_refused(llama3_8b(), ranks(3), "/num_attention_heads", "a multiple of the 3 ranks, got 32");
  expect_refused(scout(), ranks(3), "/text_config/num_attention_heads", "got 40");
  expect_refused(scout(), ranks(1, 3), "/text_config/num_local_experts", "a multiple of the 3 ranks, got 16");
  json odd = llama3_8b();
  odd["intermediate_size"] = 14337;
  expect_refused(odd, ranks(2), "/intermediate_size", "got 14337");
  odd = llama3_8b();
  odd["num_attention_heads"] = 60;
  expect_refused(odd, ranks(12), "/num_key_value_heads", "12 tensor parallel ranks, got 8");
  expect_refused(llama3_8b(), ranks(0), "tp", "from 1");
  expect_refused(llama3_8b(), ranks(1, -1), "ep", "from 1");
  ModelOptions none;
  none.max_tokens = 0;
  expect_refused(llama3_8b(), none, "max_tokens", "from 1");
}

TEST(ProblemModel, BadConfigurations) {
  json config = llama3_8b();
  config.erase("hidden_size");
  expect_refused(config, {}, "/hidden_size", "needs it");
  config["hidden_size"] = "4096";
  expect_refused(config, {}, "/hidden_size", "an integer");
  config["hidden_size"] = 4096.0;
  expect_refused(config, {}, "/hidden_size", "an integer");
  config["hidden_size"] = 0;
  expect_refused(config, {}, "/hidden_size", "from 1");
  config["hidden_size"] = std::int64_t{1} << 40;
  expect_refused(config, {}, "/hidden_size", "got 1099511627776");
  config = scout();
  config.erase("text_config");
  expect_refused(config, {}, "/text_config", "an object");
  config = mixtral();
  config.erase("num_local_experts");
  expect_refused(config, {}, "/num_local_experts", "num_local_experts, num_experts");
  config = mixtral();
  config["num_experts_per_tok"] = 9;
  expect_refused(config, {}, "/num_experts_per_tok", "at most the 8 experts");
  expect_refused(json::array(), {}, "", "a JSON object");
}

TEST(ProblemModel, AnUnknownArchitectureListsTheKnownOnesAndTheFields) {
  json config = llama3_8b();
  config["architectures"] = {"BertModel"};
  expect_refused(config, {}, "/architectures", "got [\"BertModel\"]");
  expect_refused(config, {}, "/architectures", "looked for in architectures, then in model_type");
  for (const std::string_view known : known_architectures()) {
    expect_refused(config, {}, "/architectures", std::string(known));
  }
  config.erase("architectures");
  EXPECT_EQ(derive(config).architecture, "LlamaForCausalLM");
  config["model_type"] = "bert";
  expect_refused(config, {}, "/model_type", "got \"bert\"");
  config.erase("model_type");
  expect_refused(config, {}, "/architectures", "got null");
}

}  // namespace
}  // namespace mxjit::problem
