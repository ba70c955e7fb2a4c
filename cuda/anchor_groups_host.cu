// Anchor groups of states in host memory (core/kernels/anchor_groups.h). Copying the states takes most of the time.
#include "core/kernels/anchor_groups.h"
#include "cuda/host_call.h"
#include "cuda/kernels.h"

namespace gigpo {

int32_t group_anchors_on_cuda(int32_t count, const int32_t* tasks, const uint8_t* bytes, const int64_t* offsets,
                              int32_t* groups) {
  cuda::use_first_device();
  if (count <= 0) return 0;
  const int64_t length = offsets[count];
  cuda::HostCall call;
  const size_t at_tasks = call.add<int32_t>(count), at_bytes = call.add<uint8_t>(length), at_offsets = call.add<int64_t>(count + 1);
  const size_t at_groups = call.add<int32_t>(count), at_total = call.add<int32_t>(1);
  const size_t at_workspace = call.add<uint8_t>(int64_t(cuda::anchor_groups_workspace(count)));
  call.allocate();
  cuda::group_anchors(count, call.upload(at_tasks, tasks, count), call.upload(at_bytes, bytes, length),
                      call.upload(at_offsets, offsets, count + 1), call.at<int32_t>(at_groups), call.at<int32_t>(at_total),
                      call.at<uint8_t>(at_workspace), nullptr);
  call.download(at_groups, groups, count);
  int32_t total = 0;
  call.download(at_total, &total, 1);
  return total;
}

}  // namespace gigpo
