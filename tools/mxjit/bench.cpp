// mxjit bench: hands over to the benchmarks.
#include "bench/bench.hpp"

#include <memory>

#include "mxjit/command.hpp"

namespace mxjit::cli {

void add_bench(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<bench::BenchOptions>();
  auto out = std::make_shared<std::string>();
  CLI::App* command = add_command(
      app, invocation, "bench", "Run a benchmark suite",
      "With --out, writes DIR/SUITE.json and DIR/SUITE.md.\n\n"
      "Suites: dispatch (host time of a call), compile (time to a kernel, cold and warm), quantize (of the\n"
      "copy roof), gemm (beside cuBLASLt),\n"
      "overlap (a quantization and its GEMM, started in order and early).\n\n"
      "Examples:\n"
      "  mxjit bench dispatch\n"
      "  mxjit bench quantize --out results\n"
      "  mxjit bench quantize --only '^(grouped|pack).*16384'",
      [options, out](const CommonOptions& common) {
        options->out = *out;
        options->json = common.json;
        if (!common.cache.empty()) options->cache_dir = common.cache;
        return bench::bench_command(*options);
      });
  command->add_option("SUITE", options->suite, "dispatch, compile, quantize, gemm or overlap")->required();
  command->add_option("--out", *out, "Folder for the result files")->type_name("DIR");
  command
      ->add_option("--only", options->only, "quantize, gemm, overlap: rows whose name and shape this finds")
      ->type_name("REGEX");
  command->add_flag("--quick", options->quick, "Fewer shapes and samples: a smoke test, no measurement");
}

}  // namespace mxjit::cli
