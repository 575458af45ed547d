#include "compile/cubin.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "mxjit/error.hpp"

namespace mxjit::compile {
namespace {

constexpr int em_cuda = 190;

[[noreturn]] void refuse(std::string_view reason) {
  throw Error(ErrorCode::io, fmt::format("cubin: {}", reason));
}

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    header_ = get<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) refuse("no ELF file");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB) {
      refuse("no little-endian 64-bit ELF file");
    }
    if (header_.e_machine != em_cuda) {
      refuse(fmt::format("ELF machine {}, expected {} (CUDA)", header_.e_machine, em_cuda));
    }
    if (header_.e_shentsize != sizeof(Elf64_Shdr)) refuse("section headers of an unknown size");
    for (int i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(get<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr), "a section header"));
    }
  }

  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }

  std::span<const std::uint8_t> contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset) {
      refuse("a section ends outside the file");
    }
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }

  std::string_view name(const Elf64_Shdr& section) const {
    return string(header_.e_shstrndx, section.sh_name);
  }

  // The string at `offset` of the string table in section `index`.
  std::string_view string(std::uint32_t index, std::uint32_t offset) const {
    if (index >= sections_.size()) refuse("a string table that does not exist");
    const auto table = contents(sections_[index]);
    if (offset >= table.size()) refuse("a name outside its string table");
    const auto from = table.subspan(offset);
    const auto end = std::find(from.begin(), from.end(), std::uint8_t{0});
    if (end == from.end()) refuse("a name without an end");
    return {reinterpret_cast<const char*>(from.data()), static_cast<std::size_t>(end - from.begin())};
  }

 private:
  template <class T>
  T get(std::uint64_t offset, std::string_view what) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) {
      refuse(fmt::format("{} ends outside the file of {} bytes", what, bytes_.size()));
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

std::uint32_t word(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The attribute records of ".nv.info": format, attribute, and 16 bits that hold the value or, for format 4,
// the length of what follows (symbol and value for the attributes read here).
void read_attributes(std::span<const std::uint8_t> info, std::uint32_t symbol, CubinFacts& facts) {
  constexpr int sized = 4, register_count = 0x2f, min_stack_size = 0x12;
  for (std::size_t at = 0; at + 4 <= info.size();) {
    const int format = info[at], attribute = info[at + 1];
    const std::size_t length = format == sized ? info[at + 2] + 256U * info[at + 3] : 0;
    at += 4;
    if (length > info.size() - at) return;
    if (length == 8 && word(info, at) == symbol) {
      const int value = static_cast<int>(std::min(word(info, at + 4), 1U << 30));
      if (attribute == register_count) facts.registers = value;
      if (attribute == min_stack_size) facts.stack_bytes = value;
    }
    at += length;
  }
}

// The note in which ptxas leaves its version ("..., V13.0.88") and its arguments ("-arch sm_90a").
void read_tool_note(std::string_view note, CubinFacts& facts) {
  const auto word_after = [&](std::string_view mark, std::string_view allowed) {
    const std::size_t at = note.find(mark);
    if (at == std::string_view::npos) return std::string();
    const std::size_t from = at + mark.size();
    const std::size_t end = std::min(note.find_first_not_of(allowed, from), note.size());
    return std::string(note.substr(from, end - from));
  };
  facts.build = word_after(", V", "0123456789.");
  facts.target = word_after("-arch ", "sm_0123456789af");
}

}  // namespace

CubinFacts inspect_cubin(std::span<const std::uint8_t> cubin, std::string_view symbol) {
  const Reader reader(cubin);
  CubinFacts facts;
  const std::uint32_t flags = reader.header().e_flags;
  // Since ABI version 8 (CUDA 13) the chip's number stands in the second byte.
  facts.sm = static_cast<int>((reader.header().e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 : flags) & 0xff);
  std::uint32_t index = 0;
  for (const Elf64_Shdr& section : reader.sections()) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const auto table = reader.contents(section);
    for (std::size_t i = 0; (i + 1) * sizeof(Elf64_Sym) <= table.size(); ++i) {
      Elf64_Sym entry;
      std::memcpy(&entry, table.data() + i * sizeof entry, sizeof entry);
      if (ELF64_ST_TYPE(entry.st_info) != STT_FUNC || ELF64_ST_BIND(entry.st_info) != STB_GLOBAL) continue;
      facts.kernels.emplace_back(reader.string(section.sh_link, entry.st_name));
      if (facts.kernels.back() == symbol) index = static_cast<std::uint32_t>(i);
    }
  }
  if (index == 0) refuse(fmt::format("no kernel \"{}\"", symbol));
  for (const Elf64_Shdr& section : reader.sections()) {
    if (section.sh_type == SHT_NULL) continue;
    const auto contents = reader.contents(section);
    if (reader.name(section) == ".nv.info") read_attributes(contents, index, facts);
    if (reader.name(section) == ".note.nv.tkinfo") {
      read_tool_note({reinterpret_cast<const char*>(contents.data()), contents.size()}, facts);
    }
  }
  return facts;
}

}  // namespace mxjit::compile
