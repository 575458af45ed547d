// What every command of the program shares: its registration, --json, --cache.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cache/cache.hpp"

namespace mxjit::cli {

struct CommonOptions {
  bool json = false;
  std::string cache;  // --cache; empty: the environment decides
};

/// The command that the command line chose. Its action runs after parsing and returns the exit status; it may
/// throw Error.
struct Invocation {
  std::string name;
  CommonOptions common;
  std::function<int()> action;
};

/// Adds a command with --json, --cache and --help to `app`. `examples` closes its help text.
CLI::App* add_command(CLI::App& app, Invocation& invocation, const std::string& name,
                      const std::string& description, const std::string& examples,
                      std::function<int(const CommonOptions&)> action);

/// The environment's cache options, overridden by --cache.
cache::Options cache_options(const CommonOptions& common);

// One function per command, in the file of its name.
void add_run(CLI::App& app, Invocation& invocation);
void add_quantize(CLI::App& app, Invocation& invocation);
void add_prewarm(CLI::App& app, Invocation& invocation);
void add_replay(CLI::App& app, Invocation& invocation);
void add_emit(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_cache(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_tune(CLI::App& app, Invocation& invocation);

}  // namespace mxjit::cli
