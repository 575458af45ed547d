#include "bench/statistics.hpp"

#include <algorithm>
#include <stdexcept>

namespace mxjit::bench {

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("summarize: no samples");
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size();
  const double upper = samples[count / 2];
  const double median = count % 2 == 1 ? upper : (samples[count / 2 - 1] + upper) / 2;
  return {median, samples.front(), samples.back()};
}

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::invalid_argument("differences: lengths differ");
  std::vector<double> out(a.size());
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), [](double x, double y) { return x - y; });
  return out;
}

}  // namespace mxjit::bench
