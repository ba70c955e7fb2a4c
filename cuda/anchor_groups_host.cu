// Anchor groups of states that lie in host memory (core/kernels/anchor_groups.h): there and back in one call. The copy of the
// states is most of the time, so this pays from some ten thousand states on.
#include "core/device_report.h"
#include "core/kernels/anchor_groups.h"
#include "cuda/kernels.h"
#include "cuda/memory.h"

namespace gigpo {

namespace {

using namespace cuda;

// One allocation for everything: its parts begin at multiples of 256 bytes.
class Parts {
 public:
  template <class T>
  size_t add(int64_t count) {
    const size_t offset = bytes_;
    bytes_ += (size_t(count) * sizeof(T) + 255) / 256 * 256;
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

}  // namespace

int32_t group_anchors_on_cuda(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                              int32_t* groups) {
  const DeviceReport report = device_report();
  if (report.devices.empty()) throw Error("DEVICE_UNAVAILABLE", report.message);
  if (count <= 0) return 0;
  CUDA_CHECK(cudaSetDevice(report.devices[0].index));
  const int64_t length = offsets[count];
  Parts parts;
  const size_t at_tasks = parts.add<int32_t>(count), at_bytes = parts.add<uint8_t>(length), at_offsets = parts.add<int64_t>(count + 1);
  const size_t at_groups = parts.add<int32_t>(count), at_total = parts.add<int32_t>(1);
  const size_t at_workspace = parts.add<uint8_t>(int64_t(anchor_groups_workspace(count)));
  Scratch memory;
  memory.grow(parts.bytes());
  auto* base = static_cast<std::byte*>(memory.data());
  CUDA_CHECK(cudaMemcpy(base + at_tasks, tasks, size_t(count) * sizeof(int32_t), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(base + at_bytes, bytes, size_t(length), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(base + at_offsets, offsets, (size_t(count) + 1) * sizeof(int64_t), cudaMemcpyHostToDevice));
  auto* found = reinterpret_cast<int32_t*>(base + at_groups);
  auto* total = reinterpret_cast<int32_t*>(base + at_total);
  cuda::group_anchors(count, reinterpret_cast<int32_t*>(base + at_tasks), reinterpret_cast<uint8_t*>(base + at_bytes),
                      reinterpret_cast<int64_t*>(base + at_offsets), found, total, base + at_workspace, nullptr);
  CUDA_CHECK(cudaMemcpy(groups, found, size_t(count) * sizeof(int32_t), cudaMemcpyDeviceToHost));
  int32_t result = 0;
  CUDA_CHECK(cudaMemcpy(&result, total, sizeof(result), cudaMemcpyDeviceToHost));
  return result;
}

}  // namespace gigpo
