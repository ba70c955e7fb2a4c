#include "cuda/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

namespace gigpo::cuda {

namespace {

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

Encode find_encode() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && status == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

}  // namespace

bool mappable(const Tensor& t) {
  return t.type == Type::bf16 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride % 8 == 0 && t.rows > 0 &&
         t.columns > 0;
}

bool map_tiles(const Tensor& t, int lines, CUtensorMap* map) {
  static const Encode encode = find_encode();
  if (!encode || !mappable(t)) return false;
  const cuuint64_t size[] = {cuuint64_t(t.columns), cuuint64_t(t.rows)}, stride[] = {cuuint64_t(2 * t.stride)};
  const cuuint32_t box[] = {64, cuuint32_t(lines)}, every[] = {1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, t.data, size, stride, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace gigpo::cuda
