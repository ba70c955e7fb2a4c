// Search paths of cuBLASLt: the CUDA toolkit, Python packages (PyTorch and others install them) of the active environment, of the python3 on
// the PATH and of the system, and the names for the dynamic linker.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

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
  // The installation of the first python3 on the PATH (a virtual environment, pyenv, uv), and the one that it links to.
  std::istringstream path(variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    std::error_code ignored;
    if (folder.empty() || !fs::exists(python, ignored)) continue;
    add_python(fs::path(folder).parent_path());
    add_python(fs::canonical(python, ignored).parent_path().parent_path());
    break;
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
