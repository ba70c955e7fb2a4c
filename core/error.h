// The core's one exception. `code` is a GigpoErrorCode of src/errors.ts; the binding turns it into a GigpoError.
#pragma once
#include <stdexcept>
#include <string>

namespace gigpo {

struct Error : std::runtime_error {
  Error(const char* code, const std::string& message) : std::runtime_error(message), code(code) {}
  const char* code;
};

}  // namespace gigpo
