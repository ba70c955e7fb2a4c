// Token log-probabilities of logits in host memory (core/kernels/token_log_probs.h). Transferring the logits takes
// longer than computing: this is for testing the kernel, not for speed.
#include "cuda/host_call.h"
#include "cuda/kernels.h"

namespace gigpo {

void token_log_probs_on_cuda(int64_t rows, int64_t vocab, const float* logits, const int32_t* tokens, double temperature,
                             float* log_probs, float* entropies) {
  cuda::use_first_device();
  cuda::HostCall call;
  const size_t at_logits = call.add<float>(rows * vocab), at_tokens = call.add<int32_t>(rows);
  const size_t at_log_probs = call.add<float>(rows), at_entropies = call.add<float>(rows);
  call.allocate();
  cuda::token_log_probs(rows, vocab, call.upload(at_logits, logits, rows * vocab), call.upload(at_tokens, tokens, rows),
                        temperature, call.at<float>(at_log_probs), call.at<float>(at_entropies), nullptr);
  call.download(at_log_probs, log_probs, rows);
  call.download(at_entropies, entropies, rows);
}

}  // namespace gigpo
