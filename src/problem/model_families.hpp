// The model families: which linear layers and experts a config.json describes. To add one, write a function
// that fills Layers from the config's fields and give it a row in the table of model_families.cpp.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem.hpp"

namespace mxjit::problem {

/// y = x W^T with W (n, k), as one rank holds it. `batch` > 0: that many independent ones side by side.
struct Linear {
  std::string name;
  std::int64_t n = 0, k = 0;
  bool bias = false;
  std::int64_t batch = 0;
};

/// The routed experts of one layer, as one rank holds them.
struct Experts {
  std::string name;
  std::int64_t hidden = 0, intermediate = 0;
  std::int64_t count = 0, local = 0, top_k = 0;
  Swiglu activation;
  bool bias = false;
  bool weight_on_input = false;
};

struct Layers {
  std::vector<Linear> linears;
  std::optional<Experts> experts;
};

/// How many ranks share a layer's heads and features, and the experts.
struct Parallel {
  std::int64_t tp = 1, ep = 1;
};

/// A config's fields. Every fault is an Error(invalid_argument) that names the field by JSON pointer.
class ModelConfig {
 public:
  ModelConfig(const nlohmann::json& object, std::string pointer)
      : object_(object), pointer_(std::move(pointer)) {}

  /// The field, or null where it is absent or JSON null.
  const nlohmann::json* find(std::string_view name) const;
  std::string at(std::string_view name) const;
  /// The first of `names` that is there; none is an error that lists them.
  std::string_view which(std::initializer_list<std::string_view> names) const;
  std::int64_t need(std::string_view name, std::int64_t low = 1) const;
  std::int64_t get(std::string_view name, std::int64_t otherwise, std::int64_t low = 0) const;
  bool flag(std::string_view name, bool otherwise) const;
  double number(std::string_view name, double otherwise) const;
  /// The field over `ranks`; an extent that does not divide is an error.
  std::int64_t share(std::string_view name, std::int64_t ranks) const;

 private:
  const nlohmann::json& object_;
  std::string pointer_;
};

struct Family {
  std::string_view architecture;  // in "architectures"
  std::string_view model_type;    // where "architectures" is absent
  std::string_view section;       // the object that holds the text model's fields, "" for the config itself
  Layers (*layers)(const ModelConfig& config, const Parallel& parallel);
};

std::span<const Family> model_families();

}  // namespace mxjit::problem
