// The file system calls that the cache makes, behind an interface: tests put faults in their way.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mxjit {

/// Every call returns a value >= 0, or -errno. Interrupted calls are repeated. This class is the real one.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Adds O_CLOEXEC to `flags`.
  virtual int open(const std::string& path, int flags, mode_t mode = 0);
  virtual int close(int fd);
  /// Reads at `offset`; fewer bytes than `size` only at the end of the file or as the system pleases.
  virtual ssize_t read(int fd, void* to, std::size_t size, std::uint64_t offset);
  virtual ssize_t write(int fd, const void* from, std::size_t size);
  virtual int sync(int fd);
  virtual int rename(const std::string& from, const std::string& to);
  virtual int unlink(const std::string& path);
  virtual int make_directory(const std::string& path, mode_t mode);
  /// Of the thing itself: a symbolic link is not followed.
  virtual int status(const std::string& path, struct stat& result);
  virtual int status(int fd, struct stat& result);
  /// Names in a directory without "." and "..", in no order.
  virtual int list(const std::string& path, std::vector<std::string>& names);
  /// Sets the times of modification and access to now.
  virtual int touch(const std::string& path);
  /// Takes an exclusive advisory lock on byte `offset` of the open file without waiting: -EAGAIN when another
  /// open file description has it. Ends with unlock, or with the last descriptor of this open file.
  virtual int try_lock(int fd, std::uint64_t offset);
  virtual int unlock(int fd, std::uint64_t offset);
};

/// The process-wide real one.
FileSystem& host_files();

/// A descriptor that closes itself. Holds -errno when opening failed.
class OpenFile {
 public:
  OpenFile(FileSystem& files, const std::string& path, int flags, mode_t mode = 0)
      : files_(&files), fd_(files.open(path, flags, mode)) {}
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  bool ok() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int error() const { return fd_ < 0 ? fd_ : 0; }
  int close();

 private:
  FileSystem* files_;
  int fd_;
};

/// Reads a regular file whole. Returns 0 or -errno: -EBADMSG for what is no regular file (a FIFO is not
/// waited for), -EFBIG past `limit` bytes. `modified`: its time of modification, seconds.
int read_file(FileSystem& files, const std::string& path, std::string& bytes, std::uint64_t limit,
              std::int64_t* modified = nullptr);

/// What the names of temporaries start with: in a folder that holds nothing else, and beside a user's files.
inline constexpr std::string_view temporary_prefix = "tmp-";
inline constexpr std::string_view beside_prefix = ".mxjit-";

/// Publishes `bytes` as `path`, whole or not at all: private temporary in `temporaries` (a directory of the
/// same file system), sync, rename, sync of the directory. The file's mode follows the umask. Returns 0 or
/// -errno, after which no temporary is left where it could be removed.
int publish_file(FileSystem& files, const std::string& temporaries, const std::string& path,
                 std::string_view bytes, std::string_view prefix = temporary_prefix);

/// A name that nobody else uses: 128 random bits, the same on no two hosts.
std::string unique_name(std::string_view prefix);

/// Creates `path` and its missing parents. One that is there already is fine. Returns 0 or -errno.
int make_directories(FileSystem& files, const std::string& path, mode_t mode);

/// Removes temporaries of publish_file whose writer is gone: nobody holds their lock and they are older than
/// `seconds`. Returns how many.
int sweep_temporaries(FileSystem& files, const std::string& temporaries, std::int64_t seconds,
                      std::string_view prefix = temporary_prefix);

/// "No space left on device" for -ENOSPC.
std::string error_text(int negative_errno);

}  // namespace mxjit
