#include "device/random_problems.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "configure/configure.hpp"
#include "device/backend.hpp"

namespace mxjit::device {

RandomCase Sampler::next() {
  for (;;) {
    const bool another = kernels_.size() + 2 < most_ && (kinds_.empty() || random_() % 2 == 0);
    RandomCase drawn = another ? draw_(random_) : like_(kinds_[random_() % kinds_.size()], random_);
    if (!fits(drawn.problem)) continue;
    if (another) kinds_.push_back(drawn);
    return drawn;
  }
}

bool Sampler::fits(const problem::Problem& problem) {
  const configure::Profile& profile = dispatch::ContextAccess::state(Machine::get().context()).profile;
  std::vector<configure::Configuration> fresh;
  for (configure::Configuration& configuration : configure::configure(problem, profile))
    if (!kernels_.contains(configuration)) fresh.push_back(std::move(configuration));
  if (kernels_.size() + fresh.size() > most_) return false;
  kernels_.insert(fresh.begin(), fresh.end());
  return true;
}

std::size_t problems_asked_for(const char* name) {
  const char* asked = std::getenv(name);
  if (asked != nullptr && *asked != '\0') return static_cast<std::size_t>(std::atoll(asked));
  return small() ? 12 : 300;
}

void run_random(Sampler& sampler, std::size_t count,
                const std::function<bool(const RandomCase&, std::uint64_t)>& holds) {
  std::vector<RandomCase> cases;
  std::vector<problem::Problem> problems;
  for (std::size_t i = 0; i < count; ++i) {
    cases.push_back(sampler.next());
    problems.push_back(cases.back().problem);
  }
  prewarm(problems);
  std::atomic<std::size_t> next{0}, differing{0};
  constexpr std::size_t enough = 20;  // failures
  const auto work = [&] {
    const OwnStream stream;
    for (std::size_t i = next++; i < count && differing < enough; i = next++) {
      SCOPED_TRACE(testing::Message()
                   << "problem " << i << ", extra pitch " << cases[i].placement.extra_pitch << ", shift "
                   << cases[i].placement.shift << ": " << problem::print(cases[i].problem));
      try {
        if (!holds(cases[i], i)) ++differing;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        ++differing;
      }
    }
  };
  const unsigned workers = backend_is_slow() ? 1 : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
  }
  testing::Test::RecordProperty("problems", static_cast<int>(count));
  testing::Test::RecordProperty("kernels", static_cast<int>(sampler.kernels()));
  testing::Test::RecordProperty("threads", static_cast<int>(workers));
}

}  // namespace mxjit::device
