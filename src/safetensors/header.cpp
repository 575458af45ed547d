#include "safetensors/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "mxjit/error.hpp"
#include "safetensors/dtype_names.hpp"

namespace mxjit::safetensors {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

[[noreturn]] void fail(const std::string& what, std::string tensor = {}) {
  throw Error(ErrorCode::invalid_argument, "safetensors: " + what, std::move(tensor));
}

// A name as a message shows it: quoted, of bounded length, with what a terminal would act on taken out.
std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 80;
  std::string text = "\"";
  for (const char c : name.substr(0, longest)) {
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  return text + (name.size() > longest ? "...\"" : "\"");
}

// Bytes of a tensor, or nothing when the product leaves 64 bits.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  // A zero extent makes the tensor empty whatever the others are, but they must still be addressable.
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::uint64_t product = size_of(dtype);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    const auto size = static_cast<std::uint64_t>(extent);
    if (size == 0) {
      empty = true;
    } else if (product > most / size) {
      return std::nullopt;
    } else {
      product *= size;
    }
  }
  return empty ? 0 : product;
}

// Follows the events of the JSON parser. The grammar of a header is small and flat, so that a place in it is
// one of six; anything deeper is refused before it is stored, which also bounds the memory a hostile header
// takes.
class HeaderReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_integer(number_integer_t value) { unexpected(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) { unexpected(text); }
  bool binary(binary_t&) { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(fmt::format("tensor {}: extent {} is too large", in_quotes(entry_.name), value), entry_.name);
      }
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::offsets) {
      if (offset_count_ >= offsets_.size()) bad_offset_count(offset_count_ + 1);
      offsets_.at(offset_count_++) = value;
    } else {
      unexpected(fmt::format("{}", value));
    }
    return true;
  }

  bool string(string_t& value) {
    if (place_ == Place::metadata) {
      header.metadata[key_] = value;
    } else if (place_ == Place::tensor && key_ == "dtype") {
      const std::optional<DType> dtype = dtype_from_name(value);
      if (!dtype)
        fail(fmt::format("tensor {}: unknown dtype {}", in_quotes(entry_.name), in_quotes(value)),
             entry_.name);
      entry_.dtype = *dtype;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::root;
    } else if (place_ == Place::root) {
      place_ = key_ == metadata_key ? Place::metadata : Place::tensor;
      keys_.clear();
      if (place_ == Place::tensor) {
        entry_ = Entry{};
        entry_.name = key_;
      }
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& value) {
    if (place_ == Place::root) {
      if (!names_.insert(value).second) fail("duplicate name " + in_quotes(value), value);
    } else {
      if (!keys_.insert(value).second)
        fail(fmt::format("{}: duplicate key {}", where(), in_quotes(value)), entry_.name);
      if (place_ == Place::tensor && value != "dtype" && value != "shape" && value != "data_offsets") {
        fail(fmt::format("tensor {}: unknown key {}; expected dtype, shape and data_offsets",
                         in_quotes(entry_.name), in_quotes(value)),
             entry_.name);
      }
    }
    key_ = value;
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) {
      if (keys_.size() != 3) {
        fail(fmt::format("tensor {}: expected dtype, shape and data_offsets", in_quotes(entry_.name)),
             entry_.name);
      }
      entry_.begin = offsets_[0];
      entry_.end = offsets_[1];
      header.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
      offset_count_ = 0;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offset_count_ != offsets_.size()) bad_offset_count(offset_count_);
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& reason) {
    // What the parser says after its own prefix; it may quote the input, so it is kept short and printable.
    const std::string_view text = reason.what();
    const std::size_t start = text.find("] ");
    const std::string_view cause = text.substr(start == std::string_view::npos ? 0 : start + 2);
    fail(fmt::format("the header is not JSON in UTF-8, near its byte {}: {}", position, in_quotes(cause)));
  }

  Header header;

 private:
  enum class Place : std::uint8_t { outside, root, metadata, tensor, shape, offsets };

  std::string where() const {
    switch (place_) {
      case Place::outside:
        return "the header";
      case Place::root:
        return key_ == metadata_key ? std::string(metadata_key) : "tensor " + in_quotes(key_);
      case Place::metadata:
        return std::string(metadata_key);
      default:
        return "tensor " + in_quotes(entry_.name);
    }
  }

  [[noreturn]] void unexpected(const std::string& value) const {
    std::string expected = "an object";
    if (place_ == Place::metadata) expected = "a string for " + in_quotes(key_);
    if (place_ == Place::tensor) expected = (key_ == "dtype" ? "a string for " : "an array for ") + key_;
    if (place_ == Place::shape || place_ == Place::offsets) expected = "non-negative integers in " + key_;
    const bool in_tensor = place_ == Place::tensor || place_ == Place::shape || place_ == Place::offsets;
    fail(fmt::format("{}: expected {}, got {}", where(), expected, in_quotes(value)),
         in_tensor ? entry_.name : key_);
  }

  [[noreturn]] void bad_offset_count(std::size_t count) const {
    fail(fmt::format("tensor {}: data_offsets must hold 2 numbers, got {}", in_quotes(entry_.name),
                     count > 2 ? "more" : std::to_string(count)),
         entry_.name);
  }

  Place place_ = Place::outside;
  std::string key_;              // the last key, of whichever object
  std::set<std::string> names_;  // of the root
  std::set<std::string> keys_;   // of the object inside it
  Entry entry_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
};

void check_extent(const Entry& entry, std::uint64_t data_size) {
  const std::string name = in_quotes(entry.name);
  if (entry.begin > entry.end) {
    fail(fmt::format("tensor {}: data_offsets [{}, {}] are out of order", name, entry.begin, entry.end),
         entry.name);
  }
  if (entry.end > data_size) {
    fail(fmt::format("tensor {}: data_offsets [{}, {}] leave the {} bytes of data", name, entry.begin,
                     entry.end, data_size),
         entry.name);
  }
  const std::optional<std::uint64_t> bytes = bytes_of(entry.dtype, entry.shape);
  if (!bytes) {
    fail(fmt::format("tensor {}: the product of the extents [{}] overflows", name,
                     fmt::join(entry.shape, ", ")),
         entry.name);
  }
  if (*bytes != entry.end - entry.begin) {
    fail(fmt::format("tensor {}: {} [{}] takes {} bytes, data_offsets [{}, {}] hold {}", name,
                     dtype_name(entry.dtype), fmt::join(entry.shape, ", "), *bytes, entry.begin, entry.end,
                     entry.end - entry.begin),
         entry.name);
  }
}

// Together the tensors must cover the data exactly.
void check_coverage(const std::vector<Entry>& entries, std::uint64_t data_size) {
  std::uint64_t covered = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != covered) {
      fail(fmt::format("tensor {}: its data starts at {}, {} the data before it, which ends at {}",
                       in_quotes(entry.name), entry.begin,
                       entry.begin < covered ? "overlapping" : "leaving a gap after", covered),
           entry.name);
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    fail(fmt::format("the tensors cover {} bytes of data, the file holds {}", covered, data_size));
  }
}

}  // namespace

std::uint64_t header_length(std::string_view first_bytes, std::uint64_t file_size) {
  if (first_bytes.size() < length_bytes || file_size < length_bytes) {
    fail(fmt::format("the file is truncated: {} bytes, a file has at least {}",
                     std::min<std::uint64_t>(first_bytes.size(), file_size), length_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(first_bytes[i])) << (8 * i);
  }
  if (length > largest_header) {
    fail(fmt::format("the header's length {} exceeds the {} bytes allowed", length, largest_header));
  }
  if (length > file_size - length_bytes) {
    fail(fmt::format("the file is truncated: its header takes {} bytes, {} follow the length", length,
                     file_size - length_bytes));
  }
  return length;
}

Header parse_header(std::string_view text, std::uint64_t data_size) {
  if (text.empty() || text.front() != '{') fail("the header must start with '{'");
  HeaderReader reader;
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  Header header = std::move(reader.header);
  for (const Entry& entry : header.entries) check_extent(entry, data_size);
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_coverage(header.entries, data_size);
  return header;
}

std::string format_header(const File& file, std::vector<const HostTensor*>& order) {
  std::vector<const TensorMap::value_type*> sorted;
  for (const auto& item : file.tensors) sorted.push_back(&item);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype) >
           size_of(b->second.dtype);  // a std::map is in the order of names already
  });

  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) json[std::string(metadata_key)] = file.metadata;
  std::uint64_t position = 0;
  order.clear();
  for (const auto* item : sorted) {
    const auto& [name, tensor] = *item;
    if (name == metadata_key) fail("a tensor must not be named " + in_quotes(name), name);
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(),
                    [](std::int64_t extent) { return extent < 0; })) {
      fail(fmt::format("tensor {}: an extent is negative", in_quotes(name)), name);
    }
    const std::optional<std::uint64_t> bytes = bytes_of(tensor.dtype, tensor.shape);
    if (bytes != tensor.bytes.size()) {
      fail(fmt::format("tensor {}: {} [{}] does not match its {} bytes", in_quotes(name),
                       dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "), tensor.bytes.size()),
           name);
    }
    json[name] = {{"dtype", dtype_name(tensor.dtype)},
                  {"shape", tensor.shape},
                  {"data_offsets", {position, position + *bytes}}};
    position += *bytes;
    order.push_back(&tensor);
  }

  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::type_error&) {
    fail("a tensor's name or a metadata string is not UTF-8");
  }
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  if (text.size() > largest_header) {
    fail(fmt::format("the header takes {} bytes, {} are allowed", text.size(), largest_header));
  }
  std::string out;
  for (std::size_t i = 0; i < length_bytes; ++i) out += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return out + text;
}

}  // namespace mxjit::safetensors
