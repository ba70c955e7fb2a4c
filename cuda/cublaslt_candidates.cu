// Search paths of cuBLASLt: the CUDA toolkit, Python packages (PyTorch and others install them), and the names for the
// dynamic linker.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cuda/cublaslt_open.h"

namespace gigpo::cuda {

std::vector<std::string> library_candidates() {
  namespace fs = std::filesystem;
  const char* const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::vector<std::string> folders, paths;
  const auto add_python = [&](const fs::path& prefix) {  // <prefix>/lib/python3.12/site-packages/nvidia/…
    std::error_code ignored;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(prefix / "lib", ignored)) {
      if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const char* package : {"nvidia/cu13/lib", "nvidia/cublas/lib"}) {
          found.push_back((entry.path() / packages / package).string());
        }
      }
    }
    std::sort(found.begin(), found.end());
    folders.insert(folders.end(), found.begin(), found.end());
  };
  if (const std::string cuda = variable("CUDA_PATH"); !cuda.empty()) folders.push_back(cuda + "/lib64");
  folders.push_back("/usr/local/cuda/lib64");
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string value = variable(prefix); !value.empty()) {
      add_python(value);
      folders.push_back(value + "/lib");
    }
  }
  if (const std::string home = variable("HOME"); !home.empty()) add_python(home + "/.local");
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda"}) add_python(prefix);
  std::error_code ignored;
  for (const std::string& folder : folders) {
    for (const char* name : names) {
      if (fs::exists(fs::path(folder) / name, ignored)) paths.push_back(folder + "/" + name);
    }
  }
  for (const char* name : names) paths.push_back(name);
  return paths;
}

}  // namespace gigpo::cuda
