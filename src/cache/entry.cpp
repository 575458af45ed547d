#include "cache/entry.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "codegen/target.hpp"
#include "compile/cubin.hpp"
#include "mxjit/error.hpp"

namespace mxjit::cache {
namespace {

using Json = nlohmann::json;

constexpr std::string_view magic = "MXJITK1\n";
constexpr std::size_t head_bytes = 24;  // magic, length of the header, length of the cubin
constexpr std::uint64_t header_limit = 1 << 20;
constexpr std::size_t digest_bytes = std::tuple_size_v<Digest>;

[[noreturn]] void refuse(std::string_view reason) {
  throw Error(ErrorCode::io, fmt::format("entry: {}", reason));
}

void append_length(std::string& image, std::uint64_t length) {
  for (int shift = 0; shift < 64; shift += 8) image += static_cast<char>(length >> shift);
}

std::uint64_t read_length(std::string_view image, std::size_t at) {
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(image[at + i]);
  return length;
}

std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

const Json& member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) refuse(fmt::format("header lacks \"{}\"", name));
  return *found;
}

std::string text(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_string()) refuse(fmt::format("header field \"{}\" is no string", name));
  return value.get<std::string>();
}

int number(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 1U << 30) {
    refuse(fmt::format("header field \"{}\" is no small count", name));
  }
  return static_cast<int>(value.get<std::uint64_t>());
}

Digest digest(const Json& object, const char* name) {
  Digest value{};
  if (!from_hex(text(object, name), value)) refuse(fmt::format("header field \"{}\" is no SHA-256", name));
  return value;
}

Entry read_header(std::string_view json) {
  Json header;
  try {
    header = Json::parse(json, [](int depth, Json::parse_event_t, Json&) {
      if (depth > 4) refuse("header nested too deeply");
      return true;
    });
  } catch (const Json::exception& error) {
    refuse(fmt::format("header is no JSON: {}", error.what()));
  }
  if (!header.is_object()) refuse("header is no object");
  if (number(header, "format") != entry_format) refuse("header of another format");
  Entry entry;
  entry.key = digest(header, "key");
  entry.templates = digest(header, "templates");
  entry.descriptor = member(header, "descriptor").dump();
  entry.target = text(header, "target");
  entry.symbol = text(header, "symbol");
  entry.build = text(header, "build");
  entry.compiler = text(header, "compiler");
  const Json& resources = member(header, "resources");
  entry.resources = {number(resources, "registers"), number(resources, "shared_bytes"),
                     number(resources, "spill_bytes"), number(resources, "stack_bytes")};
  return entry;
}

// What can be told without the cubin: that the header agrees with itself, and its key with its contents.
void check_header(const Entry& entry) {
  codegen::KernelDescriptor descriptor;
  try {
    descriptor = codegen::parse_descriptor(entry.descriptor);
    if (codegen::print(descriptor) != entry.descriptor) refuse("descriptor is not in its canonical form");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    refuse(error.what());
  }
  if (descriptor.target != entry.target) {
    refuse(fmt::format("target {} of a descriptor for {}", entry.target, descriptor.target));
  }
  if (codegen::symbol(descriptor) != entry.symbol) refuse("symbol is not the descriptor's");
  if (entry.compiler.empty() || entry.build.empty()) refuse("no build");
  if (codegen::key(descriptor, entry.templates) != entry.key) refuse("key is not that of its contents");
}

void check_cubin(const Entry& entry) {
  const compile::CubinFacts facts = compile::inspect_cubin(entry.cubin, entry.symbol);
  const codegen::Target target = codegen::parse_target(entry.target);
  if (facts.sm != target.number) refuse(fmt::format("cubin for sm_{}, expected {}", facts.sm, entry.target));
  if (!facts.target.empty() && facts.target != entry.target) {
    refuse(fmt::format("cubin for {}, expected {}", facts.target, entry.target));
  }
}

}  // namespace

Entry make_entry(const codegen::KernelDescriptor& descriptor, const compile::Compiled& compiled) {
  Entry entry;
  entry.key = codegen::key(descriptor);
  entry.descriptor = codegen::print(descriptor);
  entry.target = descriptor.target;
  entry.symbol = compiled.symbol;
  entry.build = compiled.build;
  entry.compiler = compiled.compiler;
  entry.templates = codegen::templates_digest();
  entry.resources = compiled.resources;
  entry.cubin = compiled.cubin;
  check_header(entry);
  check_cubin(entry);
  return entry;
}

std::string serialize(const Entry& entry) {
  const Json header = {
      {"format", entry_format},
      {"key", to_hex(entry.key)},
      {"descriptor", Json::parse(entry.descriptor)},
      {"target", entry.target},
      {"symbol", entry.symbol},
      {"build", entry.build},
      {"compiler", entry.compiler},
      {"templates", to_hex(entry.templates)},
      {"resources",
       {{"registers", entry.resources.registers},
        {"shared_bytes", entry.resources.shared_bytes},
        {"spill_bytes", entry.resources.spill_bytes},
        {"stack_bytes", entry.resources.stack_bytes}}},
  };
  const std::string json = header.dump();
  std::string image(magic);
  append_length(image, json.size());
  append_length(image, entry.cubin.size());
  image += json;
  image.append(reinterpret_cast<const char*>(entry.cubin.data()), entry.cubin.size());
  image += bytes_of(sha256(image));
  return image;
}

std::size_t header_end(std::string_view head) {
  if (head.size() < head_bytes) refuse(fmt::format("{} bytes, too short for an entry", head.size()));
  if (!head.starts_with(magic)) refuse("no entry of this format");
  const std::uint64_t length = read_length(head, magic.size());
  if (length > header_limit) refuse("header too long");
  return head_bytes + length;
}

Entry parse_entry_header(std::string_view head) {
  const std::size_t end = header_end(head);
  if (end > head.size()) refuse("header cut short");
  Entry entry = read_header(head.substr(head_bytes, end - head_bytes));
  check_header(entry);
  return entry;
}

Entry parse_entry(std::string_view image) {
  const std::size_t end = header_end(image);
  const std::uint64_t cubin = read_length(image, magic.size() + 8);
  if (end > image.size() || cubin > image.size() || end + cubin + digest_bytes != image.size()) {
    refuse(fmt::format("{} bytes, not the length it states", image.size()));
  }
  const std::string_view body = image.substr(0, image.size() - digest_bytes);
  if (bytes_of(sha256(body)) != image.substr(body.size())) refuse("SHA-256 does not match");
  Entry entry = read_header(image.substr(head_bytes, end - head_bytes));
  check_header(entry);
  const std::string_view payload = image.substr(end, cubin);
  entry.cubin.assign(payload.begin(), payload.end());
  check_cubin(entry);
  return entry;
}

Entry parse_entry(std::string_view image, const Digest& key) {
  Entry entry = parse_entry(image);
  if (entry.templates != codegen::templates_digest()) refuse("made from another version of the templates");
  if (entry.key != key) refuse("holds another key than its name says");
  return entry;
}

bool is_older(std::string_view build, std::string_view other) {
  const auto next = [](std::string_view& text) {
    int value = 0;
    const std::size_t end = std::min(text.find('.'), text.size());
    std::from_chars(text.data(), text.data() + end, value);
    text.remove_prefix(std::min(end + 1, text.size()));
    return value;
  };
  while (!build.empty() || !other.empty()) {
    const int a = next(build), b = next(other);
    if (a != b) return a < b;
  }
  return false;
}

}  // namespace mxjit::cache
