#include "mxjit/new_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <string>
#include <vector>

#include "mxjit/error.hpp"

namespace mxjit::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".lock";

[[noreturn]] void refuse(const fs::path& out, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("OUT \"{}\": {}", out.string(), why), "OUT");
}

[[noreturn]] void fail(const fs::path& out, const std::string& what, int error) {
  throw Error(ErrorCode::io,
              fmt::format("\"{}\" could not be written: {}: {}", out.string(), what, error_text(error)));
}

// Removes the folders beside `out` whose maker is gone: nobody holds their lock, a minute after it was made.
void sweep_folders(const fs::path& beside) {
  constexpr std::int64_t a_minute = 60;
  std::vector<std::string> names;
  if (host_files().list(beside.string(), names) < 0) return;
  for (const std::string& name : names) {
    if (!name.starts_with(beside_prefix)) continue;
    const fs::path lock = beside / name / lock_name;
    struct stat status {};
    if (host_files().status(lock.string(), status) < 0 || !S_ISREG(status.st_mode)) continue;
    if (std::time(nullptr) - status.st_mtime < a_minute) continue;
    const OpenFile file(host_files(), lock.string(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
    std::error_code ignored;
    if (file.ok() && host_files().try_lock(file.fd(), 0) == 0) fs::remove_all(beside / name, ignored);
  }
}

void sync_folder(const fs::path& folder, const fs::path& out) {
  const OpenFile file(host_files(), folder.string(), O_RDONLY | O_DIRECTORY);
  if (!file.ok()) fail(out, "open its folder", file.error());
  const int error = host_files().sync(file.fd());
  if (error < 0 && error != -EINVAL && error != -EBADF) fail(out, "sync its folder", error);
}

}  // namespace

fs::path check_output_folder(const fs::path& given, const fs::path& input) {
  fs::path out = given.lexically_normal();
  if (!out.has_filename()) out = out.parent_path();  // "out/"
  if (out.empty() || out.filename() == "." || out.filename() == "..")
    refuse(given, "the name of a new folder is expected");
  std::error_code error;
  const fs::file_status status = fs::status(out, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) refuse(given, "this is no folder; IN is one, and so is OUT");
    if (!fs::is_empty(out, error) || error) refuse(given, "the folder is not empty; name a new one");
  }
  const fs::path parent = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, error))
    refuse(given, fmt::format("there is no folder \"{}\"", parent.string()));
  for (fs::path at = fs::canonical(parent); at != at.root_path(); at = at.parent_path())
    if (fs::equivalent(at, input, error)) refuse(given, "it lies inside IN; name a folder elsewhere");
  return out;
}

NewFolder::NewFolder(fs::path out) : out_(std::move(out)) {
  const fs::path beside = out_.has_parent_path() ? out_.parent_path() : fs::path(".");
  sweep_folders(beside);
  path_ = beside / unique_name(beside_prefix);
  if (const int error = host_files().make_directory(path_.string(), 0777); error < 0)
    fail(out_, "make a folder beside it", error);
  lock_.emplace(host_files(), (path_ / lock_name).string(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (lock_->ok()) host_files().try_lock(lock_->fd(), 0);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void NewFolder::publish() {
  if (const int error = host_files().unlink((path_ / lock_name).string()); error < 0 && error != -ENOENT)
    fail(out_, "remove the lock", error);
  sync_folder(path_, out_);
  // Takes the place of an empty folder; one that was filled meanwhile stays.
  if (const int error = host_files().rename(path_.string(), out_.string()); error < 0)
    fail(out_, "rename the finished folder", error);
  path_.clear();
  sync_folder(out_.has_parent_path() ? out_.parent_path() : fs::path("."), out_);
}

}  // namespace mxjit::cli
