// The program `mxjit`: parses the command line, runs the chosen command, turns its errors into messages and
// exit statuses.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <new>
#include <string_view>

#include "mxjit/command.hpp"
#include "mxjit/context.hpp"
#include "mxjit/report.hpp"

namespace {

using namespace mxjit;
using namespace mxjit::cli;

bool has_flag(int argc, char** argv, std::string_view flag) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) return false;
    if (argv[i] == flag) return true;
  }
  return false;
}

int run_action(const Invocation& invocation) {
  const bool json = invocation.common.json;
  const auto failed = [&](std::string_view what) {
    return report_error(invocation.name, "internal", what, "", exit_failed, json);
  };
  try {
    const int status = invocation.action();
    flush_output();
    return status;
  } catch (const Error& error) {
    return report_error(invocation.name, to_string(error.code()), error.what(), error.argument(),
                        exit_status(error.code()), json);
  } catch (const std::bad_alloc&) {
    return failed("out of memory");
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A file-size limit is then a failed write, which is cleaned up after, instead of a dead process.
  std::signal(SIGXFSZ, SIG_IGN);

  CLI::App app{
      "Writes, compiles, caches and launches FP8 and MXFP8 GPU kernels.\n"
      "Exit status: 0 done; 1 the work failed; 2 bad usage or input; 3 a needed part is missing here.\n"
      "Errors go to stderr; with --json they are one JSON document on stdout, too.",
      "mxjit"};
  app.set_version_flag("--version", std::string(version()), "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  app.footer("mxjit COMMAND --help explains a command and shows examples.");

  Invocation invocation;
  add_run(app, invocation);
  add_quantize(app, invocation);
  add_prewarm(app, invocation);
  add_replay(app, invocation);
  add_emit(app, invocation);
  add_explain(app, invocation);
  add_cache(app, invocation);
  add_doctor(app, invocation);
  add_tune(app, invocation);
  add_bench(app, invocation);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string hint = "\nmxjit --help lists the commands, mxjit COMMAND --help their options";
    return report_error("", "usage", error.what() + hint, "", exit_bad_usage, has_flag(argc, argv, "--json"));
  }
  try {
    log_to_stderr();
  } catch (const Error& error) {
    return report_error(invocation.name, to_string(error.code()), error.what(), error.argument(),
                        exit_status(error.code()), invocation.common.json);
  }
  return run_action(invocation);
}
