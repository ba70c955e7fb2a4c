// cuTensorMapEncodeTiled, only for bf16 matrices with 128-byte swizzle, with the driver's conditions.
#include <cstring>

#include "asynchronous.h"
#include "cudaTypedefs.h"
#include "streams.h"

namespace gigpo::cuda::emulator {

namespace {

constexpr uint64_t encoded = 0x70616D726F736E65u;

CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data, const cuuint64_t* size,
                const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* every, CUtensorMapInterleave,
                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const auto fits = [](auto value, uint64_t least, uint64_t most) { return value >= least && value <= most; };
  const bool valid = type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 && rank == 2 && swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
                     reinterpret_cast<uintptr_t>(map) % 64 == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0 &&
                     fits(size[0], 1, uint64_t{1} << 32) && fits(size[1], 1, uint64_t{1} << 32) && strides[0] % 16 == 0 &&
                     fits(strides[0], 2 * size[0], (uint64_t{1} << 40) - 1) && fits(box[0], 1, 64) && fits(box[1], 1, 256) &&
                     box[0] * 2 % 16 == 0 && every[0] == 1 && every[1] == 1;
  if (!valid) return CUDA_ERROR_INVALID_VALUE;
  const TensorMap own = {static_cast<const char*>(data), {size[0], size[1]}, strides[0], {box[0], box[1]}};
  static_assert(sizeof own + 8 <= sizeof *map);
  map->opaque[0] = encoded;
  std::memcpy(map->opaque + 1, &own, sizeof own);
  return CUDA_SUCCESS;
}

}  // namespace

TensorMap tensor_map(const CUtensorMap* map) {
  if (map->opaque[0] != encoded) fault("cp.async.bulk.tensor with a map that was not encoded");
  TensorMap own;
  std::memcpy(&own, map->opaque + 1, sizeof own);
  return own;
}

}  // namespace gigpo::cuda::emulator

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  const bool found = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0 && version >= 12000;
  *function = found ? reinterpret_cast<void*>(&gigpo::cuda::emulator::encode) : nullptr;
  if (status) *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
