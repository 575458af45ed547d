#include "compile/locate.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace mxjit::compile {
namespace {

constexpr std::string_view library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Folders of a colon list; empty and relative elements are left out.
std::vector<std::string> folders(const std::string& list) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    if (end > at && list[at] == '/') all.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

bool read_at(int fd, std::uint64_t offset, void* to, std::size_t size) {
  return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

std::string find_note(int fd, const Elf64_Phdr& segment) {
  if (segment.p_filesz > 4096) return {};
  std::string notes(segment.p_filesz, '\0');
  if (!read_at(fd, segment.p_offset, notes.data(), notes.size())) return {};
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
    const std::size_t body = at + sizeof note + padded(note.n_namesz);
    if (body > notes.size() || note.n_descsz > notes.size() - body) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + at + sizeof note, "GNU", 4) == 0) {
      constexpr std::string_view digits = "0123456789abcdef";
      std::string hex;
      for (const char c : std::string_view(notes).substr(body, note.n_descsz)) {
        hex += digits[static_cast<unsigned char>(c) >> 4];
        hex += digits[static_cast<unsigned char>(c) & 15];
      }
      return hex;
    }
    at = body + padded(note.n_descsz);
  }
  return {};
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::string& path_override) {
  if (!path_override.empty()) return {path_override};
  if (const std::string path = environment("MXJIT_NVRTC"); !path.empty()) return {path};
  std::vector<std::string> places;
  for (const std::string& home : folders(environment("CUDA_HOME"))) {
    places.push_back(home + "/lib64");
    places.push_back(home + "/lib");
  }
  for (const std::string& folder : folders(environment("LD_LIBRARY_PATH"))) places.push_back(folder);
  places.emplace_back("/usr/local/cuda/lib64");
  places.emplace_back("/usr/lib/x86_64-linux-gnu");
  places.emplace_back("/usr/lib/aarch64-linux-gnu");
  places.emplace_back("/usr/lib64");
  std::vector<std::string> candidates;
  for (const std::string& place : places) {
    for (const std::string_view name : library_names) {
      std::string path = place + "/" + std::string(name);
      if (access(path.c_str(), R_OK) == 0) candidates.push_back(std::move(path));
    }
  }
  for (const std::string_view name : library_names) candidates.emplace_back(name);  // as the loader finds it
  return candidates;
}

std::string build_id(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string id;
  Elf64_Ehdr header;
  if (read_at(fd, 0, &header, sizeof header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_phentsize == sizeof(Elf64_Phdr)) {
    for (int i = 0; i < header.e_phnum && id.empty(); ++i) {
      Elf64_Phdr segment;
      if (!read_at(fd, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) break;
      if (segment.p_type == PT_NOTE) id = find_note(fd, segment);
    }
  }
  ::close(fd);
  return id;
}

}  // namespace mxjit::compile
