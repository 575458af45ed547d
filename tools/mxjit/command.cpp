#include "mxjit/command.hpp"

#include <filesystem>
#include <utility>

namespace mxjit::cli {

CLI::App* add_command(CLI::App& app, Invocation& invocation, const std::string& name,
                      const std::string& description, const std::string& examples,
                      std::function<int(const CommonOptions&)> action) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer(examples);
  command->add_flag("--json", invocation.common.json, "Print the result (or the error) as JSON on stdout");
  command
      ->add_option("--cache", invocation.common.cache,
                   "Writable cache directory (default: MXJIT_CACHE_DIR, XDG_CACHE_HOME/mxjit, "
                   "HOME/.cache/mxjit)")
      ->type_name("DIR")
      ->check([](const std::string& value) {
        return value.empty() ? std::string("a directory is expected") : std::string();
      });
  command->callback([&invocation, command, action = std::move(action)] {
    const CLI::App* parent = command->get_parent();
    const bool nested = parent != nullptr && parent->get_parent() != nullptr;
    invocation.name = nested ? parent->get_name() + " " + command->get_name() : command->get_name();
    invocation.action = [&invocation, action] { return action(invocation.common); };
  });
  return command;
}

cache::Options cache_options(const CommonOptions& common) {
  cache::Options options = cache::Options::from_environment();
  if (!common.cache.empty()) options.root = std::filesystem::absolute(common.cache);
  return options;
}

}  // namespace mxjit::cli
