// Log-probabilities and gradients of tokens other than the sampled ones for the fused head
// (core/kernels/token_log_probs.h, HeadTokens), in two kernels before and after those of policy_head.cu, which only use
// the sum of their gradients. The first runs while the logits are available:
//   l_i = (z_i - z_token) / T
// The second computes log p_i = l_i + log p_token, which is either the result, or the input of the token's gradient: it
// is recomputed with its own part added, and overwrites the head's value, so that it is rounded once.
#include "cuda/kernels.h"
#include "cuda/launch.h"
#include "cuda/vector.cuh"

namespace gigpo::cuda {

namespace {

constexpr int threads = 256;

__device__ bool is_known(int32_t token, int64_t vocab) { return token >= 0 && token < vocab; }

template <class Logit>
__global__ void __launch_bounds__(threads) relate_kernel(int64_t all, int64_t vocab, const Logit* logits, const PolicyHeadRow* inputs,
                                                         double temperature, HeadTokens others) {
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= all) return;
  const int64_t row = i / others.count;
  const int32_t sampled = inputs[row].token, token = others.tokens[i];
  if (!is_known(sampled, vocab) || !is_known(token, vocab)) return;
  const Logit* z = logits + row * vocab;
  others.log_probs[i] = float((double(to_float(z[token])) - double(to_float(z[sampled]))) / temperature);
}

__global__ void __launch_bounds__(threads) tell_kernel(int64_t all, const PolicyHeadResult* results, HeadTokens others) {
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < all) others.log_probs[i] += results[i / others.count].log_prob;
}

template <class Gradient>
__global__ void __launch_bounds__(threads) gradient_kernel(int64_t all, int64_t vocab, Gradient* gradients, int64_t stride,
                                                           const PolicyHeadRow* inputs, PolicyHeadOptions options,
                                                           const PolicyHeadResult* results, HeadTokens others) {
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= all) return;
  const int64_t row = i / others.count;
  const PolicyHeadRow input = inputs[row];
  const int32_t token = others.tokens[i];
  if (input.weight == 0 || !is_known(input.token, vocab) || !is_known(token, vocab)) return;
  const double entropy = results[row].entropy, log_prob = double(others.log_probs[i]) + double(results[row].log_prob);
  PolicyHeadResult unused;
  const HeadRowGradient g = head_row_loss(results[row].log_prob, entropy, input, options, &unused);
  const double own = double(others.gradients[i]) / options.temperature + (token == input.token ? g.token : 0);
  assign(gradients + row * stride + token, float(own + exp(log_prob) * (g.entropy * (log_prob + entropy) - g.all)));
}

template <class Kernel, class... Arguments>
void launch_each(Kernel kernel, int64_t all, cudaStream_t stream, Arguments... arguments) {
  if (all > 0) launch(kernel, dim3(unsigned((all + threads - 1) / threads)), dim3(threads), 0, stream, all, arguments...);
}

}  // namespace

void relate_head_tokens(Tensor logits, const PolicyHeadRow* inputs, double temperature, const HeadTokens& others, cudaStream_t stream) {
  with_type(logits.type, [&](auto tag) {
    using Logit = typename decltype(tag)::type;
    launch_each(relate_kernel<Logit>, logits.rows * others.count, stream, logits.columns, static_cast<const Logit*>(logits.data), inputs,
                temperature, others);
  });
}

void tell_head_tokens(int64_t rows, const PolicyHeadResult* results, const HeadTokens& others, cudaStream_t stream) {
  launch_each(tell_kernel, rows * others.count, stream, results, others);
}

void head_token_gradients(Tensor gradients, const PolicyHeadRow* inputs, const PolicyHeadOptions& options, const PolicyHeadResult* results,
                          const HeadTokens& others, cudaStream_t stream) {
  with_type(gradients.type, [&](auto tag) {
    using Gradient = typename decltype(tag)::type;
    launch_each(gradient_kernel<Gradient>, gradients.rows * others.count, stream, gradients.columns, static_cast<Gradient*>(gradients.data),
                gradients.stride, inputs, options, results, others);
  });
}

}  // namespace gigpo::cuda
