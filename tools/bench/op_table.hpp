// What the quantize suite measures: a line a case.
#pragma once

#include <string>
#include <vector>

#include "bench/op_case.hpp"

namespace mxjit::bench {

/// A case and what it is compared with: calls one after the other that leave the same outputs.
struct Contest {
  OpCase one;
  std::vector<OpCase> peer;  // empty: none
  std::string peer_name;
};

/// Cases that are measured in turn, on tensors that they share.
struct Family {
  Sizes shape;
  std::vector<Contest> contests;
};

/// One shape: every quantizer that suits it.
Family family_of(const Sizes& shape);
/// `quick`: two shapes.
std::vector<Family> op_table(bool quick);

}  // namespace mxjit::bench
