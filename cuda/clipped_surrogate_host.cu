// The clipped surrogate of columns in host memory (core/kernels/clipped_surrogate.h).
#include <iterator>

#include "cuda/host_call.h"
#include "cuda/kernels.h"

namespace gigpo {

ClippedSurrogateReport clipped_surrogate_on_cuda(const ClippedSurrogateInput& input, const ClippedSurrogateOptions& options,
                                                 float* gradient) {
  check(input, options);
  cuda::use_first_device();
  cuda::HostCall call;
  const int64_t tokens = input.tokens;
  const size_t at_lengths = call.add<int32_t>(input.rows), at_gradient = call.add<float>(tokens);
  const size_t at_report = call.add<ClippedSurrogateReport>(1);
  const size_t at_workspace = call.add<uint8_t>(int64_t(cuda::clipped_surrogate_workspace(input.rows)));
  ClippedSurrogateInput there = input;
  const float* ClippedSurrogateInput::*columns[] = {&ClippedSurrogateInput::log_probs, &ClippedSurrogateInput::old_log_probs,
                                                    &ClippedSurrogateInput::advantages, &ClippedSurrogateInput::mask,
                                                    &ClippedSurrogateInput::reference_log_probs};
  size_t at_columns[std::size(columns)];
  for (size_t& offset : at_columns) offset = call.add<float>(tokens);
  call.allocate();
  there.row_lengths = call.upload(at_lengths, input.row_lengths, input.rows);
  for (size_t i = 0; i < std::size(columns); i++) {
    if (input.*columns[i]) there.*columns[i] = call.upload(at_columns[i], input.*columns[i], tokens);
  }
  cuda::clipped_surrogate(there, options, call.at<float>(at_gradient), call.at<ClippedSurrogateReport>(at_report),
                          call.at<uint8_t>(at_workspace), nullptr);
  if (gradient) call.download(at_gradient, gradient, tokens);
  ClippedSurrogateReport report;
  call.download(at_report, &report, 1);
  return report;
}

}  // namespace gigpo
