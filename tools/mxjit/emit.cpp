// mxjit emit: what is generated for a problem.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cache/cache.hpp"
#include "compile/nvrtc.hpp"
#include "configure/profile.hpp"
#include "mxjit/command.hpp"
#include "mxjit/device.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/kernels.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

struct EmitOptions {
  std::string problem, arch, cubin;
  bool descriptor = false, ptx = false;
  std::optional<std::size_t> kernel;
};

// The kernel that --kernel names, or all of them.
std::vector<Kernel> chosen_kernels(const EmitOptions& options, const problem::Problem& problem,
                                   cache::Cache& cache) {
  std::vector<Kernel> kernels =
      kernels_of(problem, configure::default_profile(target_or_default(options.arch)), cache);
  if (options.kernel) {
    if (*options.kernel >= kernels.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--kernel: {}; the problem needs {} kernels, counted from 0", *options.kernel,
                              kernels.size()),
                  "--kernel");
    kernels = {kernels[*options.kernel]};
  }
  if (!options.cubin.empty() && kernels.size() != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--cubin: the problem needs {} kernels; choose one with --kernel 0 to {}",
                            kernels.size(), kernels.size() - 1),
                "--cubin");
  return kernels;
}

int emit_cubin(const EmitOptions& options, const CommonOptions& common) {
  check_output(options.cubin, {options.problem}, "--cubin");
  const problem::Problem problem = load_problem(options.problem);
  cache::Cache cache(cache_options(common));
  const Kernel kernel = chosen_kernels(options, problem, cache).front();
  const std::shared_ptr<const cache::Entry> entry = cache.get(kernel.descriptor, problem::print(problem));
  write_whole(options.cubin,
              {reinterpret_cast<const char*>(entry->cubin.data()), entry->cubin.size()});  // NOLINT: bytes
  if (common.json)
    print_json({{"key", kernel.key},
                {"target", entry->target},
                {"symbol", entry->symbol},
                {"build", entry->build},
                {"bytes", entry->cubin.size()},
                {"registers", entry->resources.registers},
                {"shared_bytes", entry->resources.shared_bytes},
                {"spill_bytes", entry->resources.spill_bytes}});
  else
    note(fmt::format("{} bytes for {}, kernel {}, {} registers", entry->cubin.size(), entry->target,
                     entry->symbol, entry->resources.registers));
  return exit_done;
}

int emit(const EmitOptions& options, const CommonOptions& common) {
  if (!options.cubin.empty()) return emit_cubin(options, common);
  cache::Cache cache(cache_options(common));
  const std::vector<Kernel> kernels = chosen_kernels(options, load_problem(options.problem), cache);
  const auto nvrtc = options.ptx ? compile::Nvrtc::open(cache_options(common).nvrtc_path) : nullptr;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Kernel& kernel : kernels) {
    const std::string descriptor = codegen::print(kernel.descriptor);
    const std::string text = options.descriptor ? descriptor + "\n"
                             : options.ptx      ? nvrtc->ptx(kernel.descriptor)
                                                : codegen::generate_source(kernel.descriptor);
    if (!common.json) {
      if (kernels.size() > 1 && !options.descriptor) print(fmt::format("// kernel {}\n", kernel.key));
      print(text);
      continue;
    }
    nlohmann::ordered_json item = {{"key", kernel.key},
                                   {"target", kernel.descriptor.target},
                                   {"symbol", codegen::symbol(kernel.descriptor)},
                                   {"descriptor", nlohmann::ordered_json::parse(descriptor)}};
    if (!options.descriptor) item[options.ptx ? "ptx" : "source"] = text;
    list.push_back(std::move(item));
  }
  if (common.json) print_json({{"kernels", list}});
  return exit_done;
}

}  // namespace

void add_emit(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = add_command(app, invocation, "emit", "Print the source generated for a problem",
                                  "Examples:\n"
                                  "  mxjit emit quantize.json\n"
                                  "  mxjit emit quantize.json --arch sm_100a --ptx\n"
                                  "  mxjit emit quantize.json --cubin kernel.cubin",
                                  [options](const CommonOptions& common) { return emit(*options, common); });
  command->add_option("PROBLEM", options->problem, "Problem file (JSON)")->required();
  add_arch_option(*command, options->arch);
  CLI::Option* descriptor =
      command->add_flag("--descriptor", options->descriptor, "Print the kernel descriptor instead");
  CLI::Option* ptx =
      command->add_flag("--ptx", options->ptx, "Print PTX instead (needs NVRTC)")->excludes(descriptor);
  command->add_option("--cubin", options->cubin, "Write the cubin, from the cache or compiled")
      ->type_name("FILE")
      ->excludes(descriptor)
      ->excludes(ptx);
  command->add_option("--kernel", options->kernel, "One of the problem's kernels, counted from 0")
      ->type_name("I");
}

}  // namespace mxjit::cli
