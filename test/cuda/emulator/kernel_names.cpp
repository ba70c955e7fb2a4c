// Kernels are in anonymous namespaces, so they have no dynamic symbols: their names come from the file's symbol table
// (ELF's .symtab).
#include "kernel_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

namespace gigpo::cuda::emulator {

namespace {

// Mangled names of functions, by their offset in the file.
using Symbols = std::map<uintptr_t, std::string>;

Symbols read_symbols(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Symbols symbols;
  if (bytes.size() < sizeof(Elf64_Ehdr)) return symbols;
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes.data() + header.e_shoff);
  for (int i = 0; i < header.e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* first = reinterpret_cast<const Elf64_Sym*>(bytes.data() + sections[i].sh_offset);
    const char* names = bytes.data() + sections[sections[i].sh_link].sh_offset;
    for (const auto* symbol = first; symbol < first + sections[i].sh_size / sizeof(Elf64_Sym); symbol++) {
      if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC) symbols.emplace(symbol->st_value, names + symbol->st_name);
    }
  }
  return symbols;
}

void remove_all(std::string& text, const char* what) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, std::strlen(what));
}

// Start of the parameters: the first parenthesis outside of template arguments.
size_t end_of_name(const std::string& text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '<') depth++;
    else if (text[i] == '>') depth--;
    else if (text[i] == '(' && depth == 0) return i;
  }
  return text.size();
}

}  // namespace

std::string kernel_name(const void* kernel) {
  Dl_info object;
  if (!dladdr(kernel, &object) || !object.dli_fname) return {};
  static auto& files = *new std::map<const void*, Symbols>;  // by load address
  auto file = files.find(object.dli_fbase);
  if (file == files.end()) {
    const bool itself = !std::strchr(object.dli_fname, '/') || !std::ifstream(object.dli_fname);
    file = files.emplace(object.dli_fbase, read_symbols(itself ? "/proc/self/exe" : object.dli_fname)).first;
  }
  // Programs that are not position-independent are loaded at the addresses of their symbols.
  const auto address = reinterpret_cast<uintptr_t>(kernel);
  auto symbol = file->second.find(address - reinterpret_cast<uintptr_t>(object.dli_fbase));
  if (symbol == file->second.end()) symbol = file->second.find(address);
  if (symbol == file->second.end()) return {};
  int status = 0;
  char* const demangled = abi::__cxa_demangle(symbol->second.c_str(), nullptr, nullptr, &status);
  if (!demangled) return symbol->second;
  std::string name = demangled;
  std::free(demangled);
  for (const char* space : {"(anonymous namespace)::", "gigpo::", "cuda::"}) remove_all(name, space);
  name.resize(end_of_name(name));
  return name.starts_with("void ") ? name.substr(5) : name;
}

}  // namespace gigpo::cuda::emulator
