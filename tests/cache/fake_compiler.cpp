#include "cache/fake_compiler.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "codegen/target.hpp"

namespace mxjit::test {

codegen::KernelDescriptor kernel(int index, const std::string& target) {
  codegen::KernelDescriptor descriptor;
  descriptor.target = target;
  descriptor.configuration.kernel = "tiny/scale_add";
  descriptor.configuration.constants = {{"columns", std::int64_t{4}},
                                        {"index", std::int64_t{index}},
                                        {"mode", std::string("TinyMode::add")},
                                        {"twice", true}};
  descriptor.configuration.threads = 128;
  return descriptor;
}

std::vector<std::uint8_t> fake_cubin(int sm, const std::string& symbol, const std::string& payload) {
  const std::string names = '\0' + symbol + '\0' + ".strtab" + '\0' + ".symtab" + '\0' + ".text" + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ident[EI_ABIVERSION] = 8;
  header.e_type = ET_EXEC;
  header.e_machine = 190;
  header.e_flags = static_cast<Elf64_Word>(sm) << 8 | 0x6000002;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  Elf64_Sym symbols[2]{};
  symbols[1].st_name = 1;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_shndx = 3;
  symbols[1].st_size = payload.size();
  Elf64_Shdr sections[4]{};
  std::uint64_t at = sizeof header;
  const auto place = [&](int index, std::size_t name, std::uint32_t type, std::uint64_t size) {
    sections[index].sh_name = static_cast<Elf64_Word>(name);
    sections[index].sh_type = type;
    sections[index].sh_offset = at;
    sections[index].sh_size = size;
    at += size;
  };
  place(1, names.find(".strtab"), SHT_STRTAB, names.size());
  place(2, names.find(".symtab"), SHT_SYMTAB, sizeof symbols);
  sections[2].sh_link = 1;
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  place(3, names.find(".text"), SHT_PROGBITS, payload.size());
  header.e_shoff = at;
  std::vector<std::uint8_t> image;
  const auto append = [&](const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(from);
    image.insert(image.end(), bytes, bytes + size);
  };
  append(&header, sizeof header);
  append(names.data(), names.size());
  append(symbols, sizeof symbols);
  append(payload.data(), payload.size());
  append(sections, sizeof sections);
  return image;
}

std::vector<std::uint8_t> expected_cubin(const codegen::KernelDescriptor& descriptor) {
  return fake_cubin(codegen::parse_target(descriptor.target).number, codegen::symbol(descriptor),
                    codegen::print(descriptor));
}

compile::Compiled FakeCompiler::compile(const codegen::KernelDescriptor& descriptor) {
  ++compiles;
  if (!tally.empty()) test::tally(tally);
  if (before) before(descriptor);
  std::this_thread::sleep_for(delay);
  compile::Compiled compiled;
  compiled.cubin = expected_cubin(descriptor);
  compiled.symbol = codegen::symbol(descriptor);
  compiled.build = build;
  compiled.compiler = name;
  compiled.resources.registers = 32;
  return compiled;
}

void tally(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (::write(fd, "x", 1) != 1) std::abort();
  ::close(fd);
}

int tallied(const fs::path& tally) { return fs::exists(tally) ? static_cast<int>(fs::file_size(tally)) : 0; }

}  // namespace mxjit::test
