#include "configure/configure.hpp"

#include <fmt/format.h>

#include "configure/quantize.hpp"
#include "mxjit/error.hpp"

namespace mxjit::configure {

std::vector<Configuration> configure(const problem::Problem& problem, const Profile& profile) {
  if (const auto* quantize = std::get_if<problem::Quantize>(&problem.op)) {
    return configure_quantize(*quantize, profile);
  }
  throw Error(
      ErrorCode::unsupported,
      fmt::format("op \"{}\" has no kernel in this version; \"quantize\" has", problem::op_name(problem)),
      "/op");
}

}  // namespace mxjit::configure
