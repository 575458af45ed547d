#include "cache/root.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

// Older temporaries without a living writer are litter.
constexpr std::int64_t temporary_seconds = 3600;

// Whoever can write to the root can hand this process code to run on the GPU.
std::string why_unsafe(const struct stat& status) {
  if (S_ISLNK(status.st_mode)) return "it is a symlink";
  if (status.st_uid != ::geteuid()) {
    return fmt::format("its owner is user {}, not {}", status.st_uid, ::geteuid());
  }
  if ((status.st_mode & S_IWOTH) != 0) return "it is world-writable";
  return {};
}

// "link/" and "link/." name what a symlink leads to; the check must see the symlink.
std::string without_trailing(std::string path) {
  while (path.size() > 1) {
    if (path.ends_with('/')) {
      path.pop_back();
    } else if (path.ends_with("/.")) {
      path.resize(path.size() - 1);
    } else {
      break;
    }
  }
  return path;
}

}  // namespace

Root::Root(FileSystem& files, std::string path, bool trust)
    : files_(files), store_(files, without_trailing(std::move(path)), true), trust_(trust) {}

bool Root::exists() {
  if (safe_) return true;
  struct stat status {};
  if (files_.status(path(), status) < 0) return false;
  if (!trust_) {
    if (const std::string reason = why_unsafe(status); !reason.empty()) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("cache root {}: {}; choose another one, or set MXJIT_CACHE_TRUST_ROOT=1 to use it "
                      "nevertheless",
                      path(), reason),
          "cache");
    }
    if (!S_ISDIR(status.st_mode)) return false;
  }
  safe_ = true;
  return true;
}

int Root::make() {
  if (exists()) return 0;
  if (const int error = make_directories(files_, path(), 0700); error < 0) return error;
  return exists() ? 0 : -ENOTDIR;
}

int Root::publish(const Entry& entry) { return publish(entry, serialize(entry)); }

int Root::publish(const Entry& entry, std::string_view image) {
  return put(store_.folder_of(entry.key), store_.path_of(entry.key, entry.compiler), image);
}

int Root::publish_tuning(std::string_view text) { return put(path(), store_.tuning_path(), text); }

int Root::put(const std::string& folder, const std::string& target, std::string_view bytes) {
  if (const int error = make(); error < 0) return error;
  const std::string temporaries = path() + "/tmp";
  // Optimistic: both directories nearly always exist.
  int error = publish_file(files_, temporaries, target, bytes);
  if (error == -ENOENT) {
    error = make_directories(files_, path(), 0700);  // gone since it was looked at
    if (error == 0) error = make_directories(files_, temporaries, 0777);
    if (error == 0) error = make_directories(files_, folder, 0777);
    if (error == 0) error = publish_file(files_, temporaries, target, bytes);
  } else if (error == -EISDIR || error == -ENOTEMPTY || error == -EEXIST) {
    if (set_aside(target)) error = publish_file(files_, temporaries, target, bytes);
  }
  if (!swept_.exchange(true)) sweep_temporaries(files_, temporaries, temporary_seconds);
  return error;
}

bool Root::set_aside(const std::string& bad) {
  const std::string quarantine = path() + "/quarantine";
  const std::string name = bad.substr(bad.rfind('/') + 1);
  const std::string target = quarantine + "/" + unique_name(name + "-");
  if (files_.rename(bad, target) == 0) return true;
  if (make_directories(files_, quarantine, 0777) == 0 && files_.rename(bad, target) == 0) return true;
  return files_.unlink(bad) == 0;
}

}  // namespace mxjit::cache
