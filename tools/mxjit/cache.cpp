// mxjit cache: looks after a cache.
#include "cache/cache.hpp"

#include <fmt/format.h>

#include <memory>

#include "cache/bundle.hpp"
#include "codegen/target.hpp"
#include "mxjit/command.hpp"
#include "mxjit/error.hpp"
#include "mxjit/files.hpp"
#include "mxjit/report.hpp"

namespace mxjit::cli {
namespace {

// A command about entries on disk needs a root.
cache::Options rooted(const CommonOptions& common) {
  cache::Options options = cache_options(common);
  if (!options.root)
    throw Error(ErrorCode::invalid_argument,
                "there is no cache root: none of --cache, MXJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set",
                "--cache");
  return options;
}

std::string human(std::uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

nlohmann::ordered_json bad_json(const std::vector<cache::Bad>& bad) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const cache::Bad& item : bad) list.push_back({{"path", item.path}, {"reason", item.reason}});
  return list;
}

void print_bad(const std::vector<cache::Bad>& bad) {
  for (const cache::Bad& item : bad) print(fmt::format("bad  {}: {}\n", item.path, item.reason));
}

int list(const CommonOptions& common) {
  const cache::Cache cache(rooted(common));
  const std::vector<cache::Entry> entries = cache.list();
  constexpr auto line = "{:<64}  {:<8}  {:<10}  {:>4}  {:>5}  {}\n";
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  if (!common.json && !entries.empty())
    print(fmt::format(line, "key", "target", "build", "regs", "spill", "symbol"));
  for (const cache::Entry& entry : entries) {
    if (common.json)
      json.push_back({{"key", to_hex(entry.key)},
                      {"target", entry.target},
                      {"symbol", entry.symbol},
                      {"build", entry.build},
                      {"registers", entry.resources.registers},
                      {"shared_bytes", entry.resources.shared_bytes},
                      {"spill_bytes", entry.resources.spill_bytes},
                      {"descriptor", nlohmann::ordered_json::parse(entry.descriptor)}});
    else
      print(fmt::format(line, to_hex(entry.key), entry.target, entry.build, entry.resources.registers,
                        entry.resources.spill_bytes, entry.symbol));
  }
  if (common.json) print_json({{"entries", json}});
  return exit_done;
}

int report(const CommonOptions& common, bool whole) {
  const cache::Cache cache(rooted(common));
  const cache::Stats stats = cache.verify(whole);
  if (common.json) {
    print_json({{"entries", stats.entries}, {"bytes", stats.bytes}, {"bad", bad_json(stats.bad)}});
  } else {
    print(fmt::format("{}: {} entries, {}\n", cache.options().root->string(), stats.entries,
                      human(stats.bytes)));
    print_bad(stats.bad);
  }
  return whole && !stats.bad.empty() ? exit_failed : exit_done;
}

struct Limits {
  std::uint64_t bytes = UINT64_MAX, entries = UINT64_MAX;
};

int collect(const CommonOptions& common, const Limits& limits) {
  cache::Cache cache(rooted(common));
  const cache::Collected done = cache.collect(limits.bytes, limits.entries);
  if (common.json)
    print_json({{"removed", done.entries},
                {"removed_bytes", done.bytes},
                {"temporaries", done.temporaries},
                {"quarantined", done.quarantined},
                {"entries", done.entries_left},
                {"bytes", done.bytes_left}});
  else
    print(fmt::format("{} entries removed ({}), {} temporaries, {} set aside; {} entries left ({})\n",
                      done.entries, human(done.bytes), done.temporaries, done.quarantined, done.entries_left,
                      human(done.bytes_left)));
  return exit_done;
}

struct Removal {
  std::vector<std::string> keys;
  bool all = false;
};

int remove(const CommonOptions& common, const Removal& removal) {
  if (removal.all == !removal.keys.empty())
    throw Error(ErrorCode::invalid_argument, "either the keys of entries or --all is expected", "KEY");
  cache::Cache cache(rooted(common));
  std::uint64_t removed = removal.all ? cache.clear() : 0;
  for (const std::string& key : removal.keys) {
    const std::uint64_t count = cache.remove(key);
    if (count == 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("KEY: no entry's key starts with \"{}\"", key),
                  "KEY");
    removed += count;
  }
  if (common.json)
    print_json({{"removed", removed}});
  else
    print(fmt::format("{} entries removed\n", removed));
  return exit_done;
}

int report_transfer(const CommonOptions& common, const cache::Transfer& transfer, const char* what) {
  if (common.json) {
    print_json({{"entries", transfer.entries},
                {"bytes", transfer.bytes},
                {"present", transfer.present},
                {"tuned", transfer.tuned},
                {"bad", bad_json(transfer.bad)}});
  } else {
    print(fmt::format("{} entries {} ({}), {} there already; {} measured choices {}\n", transfer.entries,
                      what, human(transfer.bytes), transfer.present, transfer.tuned, what));
    print_bad(transfer.bad);
  }
  return transfer.bad.empty() ? exit_done : exit_failed;
}

int export_bundle(const CommonOptions& common, const std::string& path, const std::string& arch) {
  check_output(path, {}, "BUNDLE");
  const cache::Cache cache(rooted(common));
  const std::string target = arch.empty() ? "" : codegen::normalize_target(arch);
  return report_transfer(common, cache.export_bundle(path, target), "exported");
}

int import_bundle(const CommonOptions& common, const std::string& path) {
  check_input(path, "BUNDLE");
  try {
    cache::read_manifest(host_files(), path);
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument, error.what(), "BUNDLE");
  }
  cache::Cache cache(rooted(common));
  return report_transfer(common, cache.import_bundle(path), "imported");
}

void add_inspection(CLI::App& group, Invocation& invocation) {
  add_command(group, invocation, "ls", "List the entries of the writable root",
              "Examples:\n  mxjit cache ls\n  mxjit cache ls --json", list);
  add_command(group, invocation, "stats", "Count entries and bytes",
              "Reads names and headers only; cache verify reads every byte.\n\n"
              "Examples:\n  mxjit cache stats --json",
              [](const CommonOptions& common) { return report(common, false); });
  add_command(
      group, invocation, "verify", "Read and check every entry",
      "A bad entry is reported and left where it is: its next use sets it aside and rebuilds it. Exit\n"
      "status 1 when there are any.\n\n"
      "Examples:\n  mxjit cache verify --cache /srv/mxjit",
      [](const CommonOptions& common) { return report(common, true); });
}

void add_removal(CLI::App& group, Invocation& invocation) {
  auto limits = std::make_shared<Limits>();
  CLI::App* gc = add_command(
      group, invocation, "gc", "Remove the least recently used entries",
      "Removes entries until both limits hold, stale temporaries, and what was set aside as bad. Nothing is\n"
      "ever removed but by this command and cache rm.\n\n"
      "Examples:\n  mxjit cache gc --max-bytes 500MB\n  mxjit cache gc --max-entries 1000",
      [limits](const CommonOptions& common) { return collect(common, *limits); });
  gc->add_option("--max-bytes", limits->bytes, "Bytes that may stay, such as 500MB or 1GiB")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(true));
  gc->add_option("--max-entries", limits->entries, "Entries that may stay")->type_name("N");

  auto removal = std::make_shared<Removal>();
  CLI::App* rm = add_command(group, invocation, "rm", "Remove entries",
                             "Examples:\n  mxjit cache rm 1f0e9a77\n  mxjit cache rm --all",
                             [removal](const CommonOptions& common) { return remove(common, *removal); });
  rm->add_option("KEY", removal->keys, "Keys as cache ls prints them, or their first 8 digits and more");
  rm->add_flag("--all", removal->all, "Remove every entry");
}

void add_bundles(CLI::App& group, Invocation& invocation) {
  auto path = std::make_shared<std::string>();
  auto arch = std::make_shared<std::string>();
  CLI::App* exporter = add_command(
      group, invocation, "export", "Write the entries to a bundle",
      "A bundle is one file, the same bytes for the same entries wherever it is made. It is used in place\n"
      "(MXJIT_BUNDLE_PATH) or imported. What mxjit tune measured goes along. Exit status 1 when an entry of\n"
      "the root is bad and was left out.\n\n"
      "Examples:\n  mxjit cache export model.bundle --arch sm_90a",
      [path, arch](const CommonOptions& common) { return export_bundle(common, *path, *arch); });
  exporter->add_option("BUNDLE", *path, "File to write")->required();
  exporter->add_option("--arch", *arch, "Only entries of this target")->type_name("ARCH");
  CLI::App* importer = add_command(
      group, invocation, "import", "Add a bundle's entries to the writable root",
      "Every entry is verified; one that is refused is reported with the reason, the others are imported,\n"
      "and the exit status is 1. Measured choices are added to those of the root.\n\n"
      "Examples:\n  mxjit cache import model.bundle",
      [path](const CommonOptions& common) { return import_bundle(common, *path); });
  importer->add_option("BUNDLE", *path, "File to read")->required();
}

}  // namespace

void add_cache(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("cache", "Look after a cache");
  group->require_subcommand(1);
  group->footer("Examples:\n  mxjit cache stats\n  mxjit cache verify --cache /srv/mxjit --json");
  add_inspection(*group, invocation);
  add_removal(*group, invocation);
  add_bundles(*group, invocation);
}

}  // namespace mxjit::cli
