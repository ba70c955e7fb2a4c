// Exception of the core. `code` is a GigpoErrorCode of src/errors.ts; the binding converts the exception to a GigpoError.
#pragma once
#include <stdexcept>
#include <string>

namespace gigpo {

struct Error : std::runtime_error {
  Error(const char* code, const std::string& message) : std::runtime_error(message), code(code) {}
  const char* code;
};

}  // namespace gigpo
