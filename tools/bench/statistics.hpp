// What a set of samples comes to.
#pragma once

#include <vector>

namespace mxjit::bench {

struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
};

/// Of at least one sample; the median of an even number is the mean of the middle two. Throws
/// std::invalid_argument on none.
Summary summarize(std::vector<double> samples);

/// Sample by sample differences `a[i] - b[i]` of two interleaved measurements: what is common to a round
/// cancels. Throws std::invalid_argument when the lengths differ.
std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace mxjit::bench
