// safetensors files on disk: published whole or not at all.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>

#include "cache/support.hpp"
#include "mxjit/error.hpp"
#include "safetensors/safetensors.hpp"

namespace mxjit::safetensors {
namespace {

namespace fs = std::filesystem;

class SafetensorsFile : public testing::Test {
 protected:
  SafetensorsFile() {
    folder_ = fs::temp_directory_path() / ("mxjit-safetensors-" + std::to_string(std::random_device()()));
    if (!fs::create_directory(folder_)) throw std::runtime_error("the folder of the test exists");
  }
  ~SafetensorsFile() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::owner_all, ignored);
    fs::remove_all(folder_, ignored);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path().filename().string());
    return out;
  }

  static File file_of(std::size_t bytes, std::uint8_t value) {
    File file;
    HostTensor& tensor = file.tensors["t"];
    tensor.shape = {static_cast<std::int64_t>(bytes)};
    tensor.bytes.assign(bytes, value);
    return file;
  }

  static ErrorCode code_of_write(const fs::path& path, const File& file) {
    try {
      write(path, file);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.code();
    }
    ADD_FAILURE() << "written";
    return ErrorCode::internal;
  }

  fs::path folder_;
};

TEST_F(SafetensorsFile, ReadsBackWhatItWrote) {
  const fs::path path = folder_ / "out.safetensors";
  File file = file_of(100'000, 5);
  file.metadata["format"] = "pt";
  write(path, file);
  EXPECT_EQ(test::read_bytes(path), serialize(file));
  const File back = read(path);
  EXPECT_EQ(back.tensors.at("t").bytes, file.tensors.at("t").bytes);
  EXPECT_EQ(back.metadata, file.metadata);
  EXPECT_EQ(names(), std::vector<std::string>{"out.safetensors"});
}

TEST_F(SafetensorsFile, ReplacesAnOlderFile) {
  const fs::path path = folder_ / "out.safetensors";
  write(path, file_of(1000, 1));
  write(path, file_of(10, 2));
  EXPECT_EQ(read(path).tensors.at("t").bytes, std::vector<std::uint8_t>(10, 2));
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(SafetensorsFile, TakesTheModeThatTheUmaskAllows) {
  const fs::path path = folder_ / "out.safetensors";
  const mode_t before = ::umask(022);
  write(path, file_of(1, 1));
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644);
}

// A file-size limit stands for a full disk: the kernel refuses the write half-way.
TEST_F(SafetensorsFile, AFullDiskLeavesTheOlderFileAndNothingElse) {
  const fs::path path = folder_ / "out.safetensors";
  write(path, file_of(10, 1));
  const std::string before = test::read_bytes(path);

  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old_limit;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const ErrorCode code = code_of_write(path, file_of(100'000, 2));
  const ErrorCode fresh = code_of_write(folder_ / "fresh.safetensors", file_of(100'000, 2));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_EQ(code, ErrorCode::io);
  EXPECT_EQ(fresh, ErrorCode::io);
  EXPECT_EQ(test::read_bytes(path), before);
  EXPECT_EQ(names(), std::vector<std::string>{"out.safetensors"});
}

TEST_F(SafetensorsFile, AMissingDirectoryIsAnIoError) {
  EXPECT_EQ(code_of_write(folder_ / "no" / "out.safetensors", file_of(1, 1)), ErrorCode::io);
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsFile, ADirectoryInTheWayIsAnIoError) {
  fs::create_directory(folder_ / "out.safetensors");
  EXPECT_EQ(code_of_write(folder_ / "out.safetensors", file_of(1, 1)), ErrorCode::io);
  EXPECT_EQ(names(), std::vector<std::string>{"out.safetensors"});
  EXPECT_TRUE(fs::is_directory(folder_ / "out.safetensors"));
}

TEST_F(SafetensorsFile, AMalformedTensorIsRefusedBeforeTheDiskIsTouched) {
  File file = file_of(4, 1);
  file.tensors["t"].shape = {5};
  EXPECT_THROW(write(folder_ / "out.safetensors", file), Error);
  EXPECT_TRUE(names().empty());
}

TEST_F(SafetensorsFile, ReadReportsWhatIsNotThere) {
  const auto failure = [](const fs::path& path) {
    try {
      read(path);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(failure(folder_ / "absent"), ErrorCode::io);
  EXPECT_EQ(failure(folder_), ErrorCode::io);
  EXPECT_EQ(failure("/dev/null"), ErrorCode::io);
  std::ofstream(folder_ / "bad") << "12345678{}";
  EXPECT_EQ(failure(folder_ / "bad"), ErrorCode::invalid_argument);
}

// The format's own package must accept the file.
TEST_F(SafetensorsFile, LoadsWithThePythonPackage) {
  if (std::system("python3 -c 'import safetensors' >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "the Python package safetensors is not installed";
  }
  const fs::path path = folder_ / "out.safetensors";
  File file = file_of(3, 7);
  file.tensors["b"].dtype = DType::bf16;
  file.tensors["b"].shape = {2, 0};
  file.tensors["q"].dtype = DType::e4m3;
  file.tensors["q"].shape = {2};
  file.tensors["q"].bytes = {1, 2};
  file.tensors["e"].dtype = DType::e8m0;
  file.tensors["e"].shape = {1};
  file.tensors["e"].bytes = {127};
  file.metadata["format"] = "pt";
  write(path, file);
  const std::string script =
      "python3 -c \"import safetensors, sys\n"
      "d = dict(safetensors.deserialize(open(sys.argv[1], 'rb').read()))\n"
      "assert sorted(d) == ['b', 'e', 'q', 't'], d\n"
      "assert d['t']['dtype'] == 'U8' and bytes(d['t']['data']) == b'\\x07\\x07\\x07', d\n"
      "assert d['b']['dtype'] == 'BF16' and d['b']['shape'] == [2, 0], d\n"
      "assert d['e']['dtype'] == 'F8_E8M0' and d['q']['dtype'] == 'F8_E4M3', d\n"
      "assert bytes(d['q']['data']) == b'\\x01\\x02', d\" ";
  EXPECT_EQ(std::system((script + path.string()).c_str()), 0);
}

}  // namespace
}  // namespace mxjit::safetensors
