// Definitions, for x86-64, of symbols that the C++ library in the prebuilt addon needs and that glibc has only after 2.28,
// implemented by older functions. binding/prebuilt.cmake handles symbols that only changed their version. None is exported.
#include <sys/stat.h>

extern "C" {

// In glibc since 2.32: whether the process has a single thread. Node always has several.
char __libc_single_threaded = 0;

// Functions in glibc since 2.33; earlier headers call __xstat with the version of the structure.
constexpr int structure_version = 1;
int __xstat(int version, const char* path, struct stat* status) noexcept;
int __lxstat(int version, const char* path, struct stat* status) noexcept;
int __fxstat(int version, int descriptor, struct stat* status) noexcept;

int stat(const char* path, struct stat* status) noexcept { return __xstat(structure_version, path, status); }
int lstat(const char* path, struct stat* status) noexcept { return __lxstat(structure_version, path, status); }
int fstat(int descriptor, struct stat* status) noexcept { return __fxstat(structure_version, descriptor, status); }
// The structure is the same on x86-64; the C++ library calls this name.
int fstat64(int descriptor, struct stat64* status) noexcept {
  return __fxstat(structure_version, descriptor, reinterpret_cast<struct stat*>(status));
}
}
