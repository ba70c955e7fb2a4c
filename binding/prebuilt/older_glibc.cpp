// What glibc has only after 2.28 and the C++ library in the prebuilt addon asks for; by what was there before, for x86-64.
// binding/prebuilt.cmake has those that merely changed their version. All of it stays inside of the addon.
#include <sys/stat.h>

extern "C" {

// Since 2.32: whether the process has a single thread. Node always has several.
char __libc_single_threaded = 0;

// Since 2.33; before, the header called these with the version of the structure.
constexpr int structure_version = 1;
int __xstat(int version, const char* path, struct stat* status) noexcept;
int __lxstat(int version, const char* path, struct stat* status) noexcept;
int __fxstat(int version, int descriptor, struct stat* status) noexcept;

int stat(const char* path, struct stat* status) noexcept { return __xstat(structure_version, path, status); }
int lstat(const char* path, struct stat* status) noexcept { return __lxstat(structure_version, path, status); }
int fstat(int descriptor, struct stat* status) noexcept { return __fxstat(structure_version, descriptor, status); }
// The same structure on x86-64; the C++ library's files ask for it.
int fstat64(int descriptor, struct stat64* status) noexcept {
  return __fxstat(structure_version, descriptor, reinterpret_cast<struct stat*>(status));
}
}
