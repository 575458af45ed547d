#include "compile/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <charconv>
#include <chrono>
#include <clocale>
#include <mutex>

#include "base/dynamic_library.hpp"
#include "compile/cubin.hpp"
#include "compile/locate.hpp"
#include "mxjit/error.hpp"

namespace mxjit::compile {
namespace {

struct EntryPoints {
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcGetErrorString) error_string;
  decltype(&::nvrtcCreateProgram) create;
  decltype(&::nvrtcDestroyProgram) destroy;
  decltype(&::nvrtcCompileProgram) compile;
  decltype(&::nvrtcGetProgramLogSize) log_size;
  decltype(&::nvrtcGetProgramLog) log;
  decltype(&::nvrtcGetCUBINSize) cubin_size;
  decltype(&::nvrtcGetCUBIN) cubin;
  decltype(&::nvrtcGetPTXSize) ptx_size;
  decltype(&::nvrtcGetPTX) ptx;
};

template <class Function>
void bind(const DynamicLibrary& library, Function& to, const char* name) {
  to = reinterpret_cast<Function>(library.require(name));
}

EntryPoints bind_all(const DynamicLibrary& library) {
  EntryPoints all{};
  bind(library, all.version, "nvrtcVersion");
  bind(library, all.error_string, "nvrtcGetErrorString");
  bind(library, all.create, "nvrtcCreateProgram");
  bind(library, all.destroy, "nvrtcDestroyProgram");
  bind(library, all.compile, "nvrtcCompileProgram");
  bind(library, all.log_size, "nvrtcGetProgramLogSize");
  bind(library, all.log, "nvrtcGetProgramLog");
  bind(library, all.cubin_size, "nvrtcGetCUBINSize");
  bind(library, all.cubin, "nvrtcGetCUBIN");
  bind(library, all.ptx_size, "nvrtcGetPTXSize");
  bind(library, all.ptx, "nvrtcGetPTX");
  return all;
}

// The compiler reads and prints numbers: it runs in the "C" locale, whatever the caller's thread has.
class PlainLocale {
 public:
  PlainLocale() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(plain_)) {}
  ~PlainLocale() {
    uselocale(before_);
    if (plain_ != nullptr) freelocale(plain_);
  }
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;

 private:
  locale_t plain_;
  locale_t before_;
};

class Program {
 public:
  Program(const EntryPoints& api, const Request& request) : api_(api) {
    std::vector<std::string> storage;  // NVRTC wants ends marked by a zero
    std::vector<const char*> texts, names;
    for (const codegen::Template& header : request.headers) {
      storage.emplace_back(header.text);
      storage.emplace_back(header.name);
    }
    for (std::size_t i = 0; i < storage.size(); i += 2) {
      texts.push_back(storage[i].c_str());
      names.push_back(storage[i + 1].c_str());
    }
    check(api_.create(&program_, request.source.c_str(), (request.symbol + ".cu").c_str(),
                      static_cast<int>(names.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { api_.destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> arguments;
    arguments.reserve(options.size());
    for (const std::string& option : options) arguments.push_back(option.c_str());
    return api_.compile(program_, static_cast<int>(arguments.size()), arguments.data());
  }

  std::string log() const { return text(api_.log_size, api_.log, "nvrtcGetProgramLog"); }
  std::string ptx() const { return text(api_.ptx_size, api_.ptx, "nvrtcGetPTX"); }
  std::vector<std::uint8_t> cubin() const {
    std::size_t size = 0;
    check(api_.cubin_size(program_, &size), "nvrtcGetCUBINSize");
    std::vector<std::uint8_t> bytes(size);
    check(api_.cubin(program_, reinterpret_cast<char*>(bytes.data())), "nvrtcGetCUBIN");
    return bytes;
  }

 private:
  void check(nvrtcResult result, std::string_view call) const {
    if (result == NVRTC_SUCCESS) return;
    throw Error(ErrorCode::compile_failed, fmt::format("{}: {}", call, api_.error_string(result)));
  }
  template <class Size, class Get>
  std::string text(Size size_of_text, Get get, std::string_view call) const {
    std::size_t size = 0;
    check(size_of_text(program_, &size), call);
    std::string bytes(size, '\0');
    check(get(program_, bytes.data()), call);
    while (!bytes.empty() && bytes.back() == '\0') bytes.pop_back();
    return bytes;
  }

  const EntryPoints& api_;
  nvrtcProgram program_ = nullptr;
};

std::string numbered(std::string_view source) {
  std::string text;
  int line = 1;
  for (std::size_t at = 0; at < source.size(); ++line) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    text += fmt::format("{:4} | {}\n", line, source.substr(at, end - at));
    at = end + 1;
  }
  return text;
}

class OpenNvrtc final : public Nvrtc {
 public:
  explicit OpenNvrtc(const DynamicLibrary& library) : api_(bind_all(library)), path_(library.path()) {
    api_.version(&major_, &minor_);
    // The file behind a bare name is the one that an entry point was loaded from.
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(api_.version), &info) != 0 && info.dli_fname != nullptr) {
      path_ = info.dli_fname;
    }
    identity_ = build_id(path_);
    if (identity_.empty()) identity_ = fmt::format("nvrtc-{}", build());
  }

  const std::string& path() const override { return path_; }
  const std::string& identity() const override { return identity_; }
  const std::string& build() const override {
    std::call_once(build_once_, [this] { build_ = find_build(); });
    return build_;
  }

  Compiled compile(const Request& request) override {
    const auto start = std::chrono::steady_clock::now();
    const PlainLocale locale;
    Program program(api_, request);
    run(program, request, request.options);
    Compiled compiled;
    compiled.cubin = program.cubin();
    compiled.symbol = request.symbol;
    compiled.log = program.log();
    const CubinFacts facts = inspect_cubin(compiled.cubin, request.symbol);
    const bool spills_known = read_resources(compiled.log, compiled.resources);
    if (facts.registers != 0) compiled.resources.registers = facts.registers;
    compiled.resources.stack_bytes = facts.stack_bytes;
    // Whoever spills has a stack; without ptxas' word the stack counts as spilled.
    if (!spills_known) compiled.resources.spill_bytes = facts.stack_bytes;
    compiled.build = facts.build.empty() ? build() : facts.build;
    compiled.compiler = identity_;
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    compiled.milliseconds = elapsed.count();
    return compiled;
  }

  std::string ptx(const Request& request) override {
    const PlainLocale locale;
    Program program(api_, request);
    std::vector<std::string> options = request.options;
    for (std::string& option : options) {  // PTX is made for a virtual architecture
      constexpr std::string_view real = "--gpu-architecture=sm_";
      if (option.starts_with(real)) option = "--gpu-architecture=compute_" + option.substr(real.size());
    }
    run(program, request, options);
    return program.ptx();
  }

 private:
  void run(Program& program, const Request& request, std::vector<std::string> options) const {
    options.emplace_back("--no-source-include");  // a stray file in the working folder is not ours
    if (major_ * 100 + minor_ >= 1209) options.emplace_back("--no-cache");  // the cache is ours
    const nvrtcResult result = program.compile(options);
    if (result == NVRTC_SUCCESS) return;
    throw Error(ErrorCode::compile_failed,
                fmt::format("NVRTC {}.{} ({}): {} in {}\n{}\nkernel: {}\nsource:\n{}", major_, minor_, path_,
                            api_.error_string(result), request.symbol, program.log(), request.subject,
                            numbered(request.source)));
  }

  // nvrtcVersion gives two numbers of three; the head of any PTX has them all.
  std::string find_build() const {
    std::string version = fmt::format("{}.{}", major_, minor_);
    const PlainLocale locale;
    Program program(api_, {"", {}, {}, "empty", {}});
    if (program.compile({}) != NVRTC_SUCCESS) return version;
    const std::string text = program.ptx();
    const std::size_t at = text.find(", V" + version + ".");
    if (at == std::string::npos) return version;
    const std::size_t from = at + 3;
    return text.substr(from, text.find_first_not_of("0123456789.", from) - from);
  }

  EntryPoints api_;
  std::string path_;
  std::string identity_;
  int major_ = 0, minor_ = 0;
  mutable std::once_flag build_once_;
  mutable std::string build_;
};

class LazyNvrtc final : public Compiler {
 public:
  explicit LazyNvrtc(std::string path) : path_(std::move(path)) {}

  std::string identity() override {
    const std::scoped_lock lock(mutex_);
    if (!identity_known_) {
      identity_ = find_identity();
      identity_known_ = true;
    }
    return identity_;
  }

  Compiled compile(const codegen::KernelDescriptor& descriptor) override {
    std::shared_ptr<Nvrtc> nvrtc;
    {
      const std::scoped_lock lock(mutex_);
      if (!nvrtc_) nvrtc_ = Nvrtc::open(path_);
      nvrtc = nvrtc_;
    }
    return nvrtc->compile(descriptor);
  }

 private:
  std::string find_identity() {
    const std::string first = nvrtc_candidates(path_).front();
    if (first.find('/') != std::string::npos) {
      if (std::string id = build_id(first); !id.empty()) return id;
    }
    try {  // a bare name: only the loader knows the file
      if (!nvrtc_) nvrtc_ = Nvrtc::open(path_);
      return nvrtc_->identity();
    } catch (const Error&) {
      return {};
    }
  }

  std::string path_;
  std::mutex mutex_;
  bool identity_known_ = false;
  std::string identity_;
  std::shared_ptr<Nvrtc> nvrtc_;
};

// The integer before `unit` in a line such as "0 bytes stack frame, 16 bytes spill stores".
bool number_before(std::string_view text, std::string_view unit, int& value) {
  const std::size_t at = text.find(unit);
  if (at == std::string_view::npos) return false;
  std::size_t from = at;
  while (from > 0 && text[from - 1] >= '0' && text[from - 1] <= '9') --from;
  return std::from_chars(text.data() + from, text.data() + at, value).ec == std::errc();
}

}  // namespace

Request request(const codegen::KernelDescriptor& descriptor) {
  const auto templates = codegen::templates();
  return {codegen::generate_source(descriptor),
          {templates.begin(), templates.end()},
          codegen::compile_options(descriptor),
          codegen::symbol(descriptor),
          codegen::print(descriptor)};
}

std::shared_ptr<Nvrtc> Nvrtc::open(const std::string& path_override) {
  return std::make_shared<OpenNvrtc>(DynamicLibrary::open("NVRTC", nvrtc_candidates(path_override)));
}

std::shared_ptr<Compiler> nvrtc_compiler(const std::string& path_override) {
  return std::make_shared<LazyNvrtc>(path_override);
}

bool read_resources(std::string_view log, Resources& resources) {
  number_before(log, " registers", resources.registers);
  number_before(log, " bytes smem", resources.shared_bytes);
  int total = 0;
  bool known = false;
  // Every function that was not inlined has a line of its own.
  for (std::string_view rest = log;;) {
    int stores = 0, loads = 0;
    if (!number_before(rest, " bytes spill stores", stores)) break;
    if (number_before(rest, " bytes spill loads", loads)) known = true;
    total += stores + loads;
    rest.remove_prefix(rest.find(" bytes spill loads") == std::string_view::npos
                           ? rest.size()
                           : rest.find(" bytes spill loads") + 1);
  }
  resources.spill_bytes = total;
  return known;
}

}  // namespace mxjit::compile
