#include "configure/configure.hpp"

#include <fmt/format.h>

#include "configure/gemm.hpp"
#include "configure/moves.hpp"
#include "configure/quantize.hpp"
#include "mxjit/error.hpp"

namespace mxjit::configure {

std::vector<Configuration> configure(const problem::Problem& problem, const Profile& profile,
                                     const GemmTuning* tuning) {
  if (const auto* quantize = std::get_if<problem::Quantize>(&problem.op)) {
    return configure_quantize(*quantize, profile);
  }
  if (const auto* gemm = std::get_if<problem::Gemm>(&problem.op))
    return configure_gemm(*gemm, profile, tuning);
  if (auto configuration = configure_move(problem)) return {*std::move(configuration)};
  throw Error(
      ErrorCode::unsupported,
      fmt::format("op \"{}\" has no kernel in this version; all others have", problem::op_name(problem)),
      "/op");
}

}  // namespace mxjit::configure
