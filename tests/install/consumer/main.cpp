// Links against the installed library and calls it. Without a GPU the right answer is an error that says so.
#include <cstdio>
#include <mxjit/mxjit.hpp>
#include <string>

// The example of README.md, which the build extracts into a file of its own.
void quantize(mxjit::Context& context, void* x, void* q_row, void* s_row, void* q_col, void* s_col,
              std::int64_t m, std::int64_t n, mxjit::Stream stream);

int main() {
  std::printf("mxjit %s\n", std::string(mxjit::version()).c_str());
  try {
    mxjit::ContextOptions options;
    options.cache_dir = "consumer-cache";
    mxjit::Context context(options);
    quantize(context, nullptr, nullptr, nullptr, nullptr, nullptr, 64, 64, nullptr);
  } catch (const mxjit::Error& error) {
    std::printf("%s: %s\n", std::string(mxjit::to_string(error.code())).c_str(), error.what());
    const bool expected = error.code() == mxjit::ErrorCode::unavailable ||
                          (error.code() == mxjit::ErrorCode::invalid_argument && !error.argument().empty());
    return expected ? 0 : 1;
  }
  std::puts("null pointers with elements were accepted");
  return 1;
}
