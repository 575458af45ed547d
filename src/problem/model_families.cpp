#include "problem/model_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "problem/fields.hpp"

namespace mxjit::problem {

using nlohmann::json;

namespace {

// Far above any model, low enough that products of three stay inside int64.
constexpr std::int64_t kMaxExtent = 1 << 24;

}  // namespace

const json* ModelConfig::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string ModelConfig::at(std::string_view name) const { return join_pointer(pointer_, name); }

std::string_view ModelConfig::which(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (find(name) != nullptr) return name;
  }
  fail(at(*names.begin()), fmt::format("one of the fields {}", fmt::join(names, ", ")), "none");
}

std::int64_t ModelConfig::need(std::string_view name, std::int64_t low) const {
  const json* value = find(name);
  if (value == nullptr) fail(at(name), "this field, the architecture needs it", "none");
  return read_integer(*value, at(name), low, kMaxExtent);
}

std::int64_t ModelConfig::get(std::string_view name, std::int64_t otherwise, std::int64_t low) const {
  return find(name) == nullptr ? otherwise : need(name, low);
}

bool ModelConfig::flag(std::string_view name, bool otherwise) const {
  const json* value = find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(at(name), "true or false", describe(*value));
  return value->get<bool>();
}

double ModelConfig::number(std::string_view name, double otherwise) const {
  const json* value = find(name);
  return value == nullptr ? otherwise : read_number(*value, at(name));
}

std::int64_t ModelConfig::share(std::string_view name, std::int64_t ranks) const {
  const std::int64_t extent = need(name);
  if (extent % ranks != 0)
    fail(at(name), fmt::format("a multiple of the {} ranks", ranks), fmt::to_string(extent));
  return extent / ranks;
}

namespace {

// Key and value heads are split like the query heads; fewer of them than ranks are repeated.
std::int64_t kv_heads(const ModelConfig& config, std::int64_t tp) {
  constexpr std::string_view name = "num_key_value_heads";
  const std::int64_t heads = config.get(name, config.need("num_attention_heads"), 1);
  if (heads % tp == 0) return heads / tp;
  if (tp % heads == 0) return 1;
  fail(config.at(name), fmt::format("a multiple or a divisor of the {} tensor parallel ranks", tp),
       fmt::to_string(heads));
}

// Grouped-query attention: query, key and value as one product, then the output projection.
void add_attention(Layers& layers, const ModelConfig& config, const Parallel& parallel, bool bias) {
  const std::int64_t hidden = config.need("hidden_size");
  const std::int64_t heads = config.share("num_attention_heads", parallel.tp);
  const std::int64_t head_dim = config.get("head_dim", hidden / config.need("num_attention_heads"), 1);
  const std::int64_t qkv = (heads + 2 * kv_heads(config, parallel.tp)) * head_dim;
  layers.linears.push_back({.name = "layers.*.self_attn.qkv_proj", .n = qkv, .k = hidden, .bias = bias});
  layers.linears.push_back(
      {.name = "layers.*.self_attn.o_proj", .n = hidden, .k = heads * head_dim, .bias = bias});
}

// Multi-head latent attention. The two projections of the hidden state are listed alone and as one product.
void add_latent_attention(Layers& layers, const ModelConfig& config, const Parallel& parallel) {
  const std::int64_t hidden = config.need("hidden_size");
  const std::int64_t heads = config.share("num_attention_heads", parallel.tp);
  const std::int64_t rope = config.need("qk_rope_head_dim", 0);
  const std::int64_t nope = config.need("qk_nope_head_dim", 0);
  const std::int64_t value = config.need("v_head_dim");
  const std::int64_t kv_rank = config.need("kv_lora_rank");
  const bool bias = config.flag("attention_bias", false);
  const auto add = [&layers](std::string_view name, std::int64_t n, std::int64_t k, bool biased = false) {
    layers.linears.push_back(
        {.name = fmt::format("layers.*.self_attn.{}", name), .n = n, .k = k, .bias = biased});
  };
  const std::int64_t q = heads * (nope + rope);
  if (config.find("q_lora_rank") != nullptr) {
    const std::int64_t q_rank = config.need("q_lora_rank");
    add("qkv_a_proj", q_rank + kv_rank + rope, hidden, bias);
    add("q_a_proj", q_rank, hidden, bias);
    add("q_b_proj", q, q_rank);
  } else {
    add("q_proj", q, hidden);
  }
  add("kv_a_proj_with_mqa", kv_rank + rope, hidden, bias);
  add("kv_b_proj", heads * (nope + value), kv_rank);
  add("o_proj", hidden, heads * value, bias);
}

// The indexer of sparse attention, not split: every rank scores every token.
void add_indexer(Layers& layers, const ModelConfig& config) {
  const std::int64_t head_dim = config.need("index_head_dim");
  layers.linears.push_back({.name = "layers.*.self_attn.indexer.wq_b",
                            .n = config.need("index_n_heads") * head_dim,
                            .k = config.need("q_lora_rank")});
  layers.linears.push_back(
      {.name = "layers.*.self_attn.indexer.wk", .n = head_dim, .k = config.need("hidden_size")});
}

// Gate and up as one product, then down. `copies` widens it: several shared experts are one wide one.
void add_mlp(Layers& layers, const ModelConfig& config, const Parallel& parallel, std::string_view name,
             std::string_view field, std::int64_t copies = 1, bool bias = false) {
  const std::int64_t hidden = config.need("hidden_size");
  const std::int64_t width = config.share(field, parallel.tp) * copies;
  layers.linears.push_back(
      {.name = fmt::format("{}.gate_up_proj", name), .n = 2 * width, .k = hidden, .bias = bias});
  layers.linears.push_back(
      {.name = fmt::format("{}.down_proj", name), .n = hidden, .k = width, .bias = bias});
}

Experts& add_experts(Layers& layers, const ModelConfig& config, const Parallel& parallel,
                     std::string_view name, std::string_view width_field, std::string_view count_field) {
  Experts& experts = layers.experts.emplace();
  experts.name = name;
  experts.hidden = config.need("hidden_size");
  experts.intermediate = config.share(width_field, parallel.tp);
  experts.count = config.need(count_field);
  experts.local = config.share(count_field, parallel.ep);
  experts.top_k = config.need("num_experts_per_tok");
  if (experts.top_k > experts.count) {
    fail(config.at("num_experts_per_tok"), fmt::format("at most the {} experts", experts.count),
         fmt::to_string(experts.top_k));
  }
  return experts;
}

// True where a list of layers names one of `kind`.
bool lists_layer(const json& types, const json& kind) {
  return types.is_array() && std::find(types.begin(), types.end(), kind) != types.end();
}

// The first layers, or those that mlp_layer_types names, have one dense MLP in place of experts.
bool has_dense_layers(const ModelConfig& config) {
  if (const json* types = config.find("mlp_layer_types")) return lists_layer(*types, "dense");
  if (const json* frequency = config.find("moe_layer_freq")) return lists_layer(*frequency, 0);
  return config.get("first_k_dense_replace", 0) > 0;
}

Layers llama(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, config.flag("attention_bias", false));
  add_mlp(layers, config, parallel, "layers.*.mlp", "intermediate_size", 1, config.flag("mlp_bias", false));
  return layers;
}

Layers llama4(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, config.flag("attention_bias", false));
  add_mlp(layers, config, parallel, "layers.*.feed_forward.shared_expert", "intermediate_size");
  const json* listed = config.find("moe_layers");
  const std::int64_t step = config.get("interleave_moe_layer_step", 1, 1);
  const bool all_moe = listed != nullptr && listed->is_array()
                           ? static_cast<std::int64_t>(listed->size()) >= config.need("num_hidden_layers")
                           : step == 1;
  if (!all_moe) add_mlp(layers, config, parallel, "layers.*.feed_forward", "intermediate_size_mlp");
  // The router's sigmoid scales an expert's input.
  add_experts(layers, config, parallel, "layers.*.feed_forward.experts", "intermediate_size",
              "num_local_experts")
      .weight_on_input = true;
  return layers;
}

Layers mixtral(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, false);
  add_experts(layers, config, parallel, "layers.*.mlp.experts", "intermediate_size",
              config.which({"num_local_experts", "num_experts"}));
  return layers;
}

Layers qwen3_moe(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, config.flag("attention_bias", false));
  const json* dense = config.find("mlp_only_layers");
  if ((dense != nullptr && dense->is_array() && !dense->empty()) ||
      config.get("decoder_sparse_step", 1, 1) > 1) {
    add_mlp(layers, config, parallel, "layers.*.mlp", "intermediate_size");
  }
  add_experts(layers, config, parallel, "layers.*.mlp.experts", "moe_intermediate_size",
              config.which({"num_experts", "num_local_experts"}));
  return layers;
}

// Dense first layers, shared experts beside the routed ones: DeepSeek and GLM.
void add_shared_and_routed(Layers& layers, const ModelConfig& config, const Parallel& parallel) {
  if (has_dense_layers(config)) add_mlp(layers, config, parallel, "layers.*.mlp", "intermediate_size");
  if (const std::int64_t shared = config.get("n_shared_experts", 0); shared > 0) {
    add_mlp(layers, config, parallel, "layers.*.mlp.shared_experts", "moe_intermediate_size", shared);
  }
  add_experts(layers, config, parallel, "layers.*.mlp.experts", "moe_intermediate_size",
              config.which({"n_routed_experts", "num_local_experts", "num_experts"}));
}

Layers deepseek_v3(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_latent_attention(layers, config, parallel);
  add_shared_and_routed(layers, config, parallel);
  return layers;
}

Layers sparse_latent(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_latent_attention(layers, config, parallel);
  add_indexer(layers, config);
  add_shared_and_routed(layers, config, parallel);
  return layers;
}

// One shared key-value head, low-rank queries, an output projection that is first block-diagonal.
Layers deepseek_v4(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  const std::int64_t hidden = config.need("hidden_size");
  const std::int64_t head_dim = config.need("head_dim");
  const std::int64_t heads = config.share("num_attention_heads", parallel.tp);
  const std::int64_t groups = config.share("o_groups", parallel.tp);
  const std::int64_t q_rank = config.need("q_lora_rank");
  const std::int64_t o_rank = config.need("o_lora_rank");
  if (heads % groups != 0) {
    fail(config.at("o_groups"), fmt::format("a divisor of the {} heads of a rank", heads),
         fmt::to_string(groups));
  }
  const auto add = [&layers](std::string_view name, std::int64_t n, std::int64_t k, std::int64_t batch = 0) {
    layers.linears.push_back(
        {.name = fmt::format("layers.*.self_attn.{}", name), .n = n, .k = k, .batch = batch});
  };
  add("q_a_proj", q_rank, hidden);
  add("q_b_proj", heads * head_dim, q_rank);
  add("kv_proj", head_dim, hidden);
  add("o_a_proj", o_rank, heads * head_dim / groups, groups);
  add("o_b_proj", hidden, groups * o_rank);
  add_shared_and_routed(layers, config, parallel);
  if (config.find("swiglu_limit") != nullptr)
    layers.experts->activation.limit = config.number("swiglu_limit", 0);
  return layers;
}

Layers glm4_moe(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, config.flag("attention_bias", false));
  add_shared_and_routed(layers, config, parallel);
  return layers;
}

Layers gpt_oss(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, config.flag("attention_bias", true));
  Experts& experts = add_experts(layers, config, parallel, "layers.*.mlp.experts", "intermediate_size",
                                 config.which({"num_local_experts", "num_experts"}));
  experts.bias = true;
  experts.activation = {.interleave = true,
                        .alpha = config.number("swiglu_alpha", 1.702),
                        .limit = config.number("swiglu_limit", 7.0)};
  return layers;
}

Layers minimax_m3(const ModelConfig& config, const Parallel& parallel) {
  Layers layers;
  add_attention(layers, config, parallel, false);
  if (has_dense_layers(config)) add_mlp(layers, config, parallel, "layers.*.mlp", "dense_intermediate_size");
  add_mlp(layers, config, parallel, "layers.*.mlp.shared_experts", "shared_intermediate_size");
  add_experts(layers, config, parallel, "layers.*.mlp.experts", "intermediate_size",
              config.which({"num_local_experts", "num_experts"}))
      .activation = {.interleave = false,
                     .alpha = config.number("swiglu_alpha", 1.702),
                     .limit = config.number("swiglu_limit", 7.0)};
  return layers;
}

constexpr std::array kFamilies{
    Family{"LlamaForCausalLM", "llama", "", llama},
    Family{"MistralForCausalLM", "mistral", "", llama},
    Family{"Qwen3ForCausalLM", "qwen3", "", llama},
    Family{"Llama4ForConditionalGeneration", "llama4", "text_config", llama4},
    Family{"Llama4ForCausalLM", "llama4_text", "", llama4},
    Family{"MixtralForCausalLM", "mixtral", "", mixtral},
    Family{"Qwen3MoeForCausalLM", "qwen3_moe", "", qwen3_moe},
    Family{"DeepseekV3ForCausalLM", "deepseek_v3", "", deepseek_v3},
    Family{"DeepseekV32ForCausalLM", "deepseek_v32", "", sparse_latent},
    Family{"DeepseekV4ForCausalLM", "deepseek_v4", "", deepseek_v4},
    Family{"GptOssForCausalLM", "gpt_oss", "", gpt_oss},
    Family{"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", "text_config", minimax_m3},
    Family{"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", "", minimax_m3},
    Family{"Glm4MoeForCausalLM", "glm4_moe", "", glm4_moe},
    Family{"GlmMoeDsaForCausalLM", "glm_moe_dsa", "", sparse_latent},
};

}  // namespace

std::span<const Family> model_families() { return kFamilies; }

}  // namespace mxjit::problem
