// Norms, rotary embedding, SwiGLU, AdamW and sampling. Every row is computed the same way whatever rows stand around it.
#include "core/cpu/kernels.h"
#include "core/cpu/vector.h"

namespace gigpo::cpu::GIGPO_ISA_NAME {

// Runs body(offset, valid lanes) over `count` floats; only the last call is partial.
template <class Body>
[[gnu::always_inline]] static inline void for_each_vec(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, int64_t{lanes});
  if (i < count) body(i, count - i);
}

GIGPO_INLINE Vec load_some(const float* p, int64_t count) { return count == lanes ? load(p) : load(p, count); }
GIGPO_INLINE void store_some(float* p, Vec v, int64_t count) {
  if (count == lanes) store(p, v);
  else store(p, v, count);
}

static void rms_norm(int64_t rows, int64_t groups, int64_t size, const float* x, int64_t x_stride, const float* weight,
                     float epsilon, float* out, int64_t out_stride, float* scales) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t g = 0; g < groups; g++) {
      const float* from = x + r * x_stride + g * size;
      float* to = out + r * out_stride + g * size;
      Vec squares{};
      for_each_vec(size, [&](int64_t i, int64_t n) {
        const Vec v = load_some(from + i, n);
        squares = fma(v, v, squares);
      });
      const float scale = 1 / __builtin_sqrtf(sum(squares) / float(size) + epsilon);
      if (scales) scales[r * groups + g] = scale;
      for_each_vec(size, [&](int64_t i, int64_t n) {
        store_some(to + i, load_some(weight + i, n) * (load_some(from + i, n) * broadcast(scale)), n);
      });
    }
  }
}

// With y = w ⊙ x·s and u = d_y ⊙ w: d_x = s · (u - x · s² · mean(u ⊙ x)), d_w = d_y ⊙ x·s.
static void rms_norm_backward(int64_t rows, int64_t groups, int64_t size, const float* d_out, int64_t d_out_stride,
                              const float* x, int64_t x_stride, const float* weight, const float* scales, float* d_x,
                              int64_t d_x_stride, bool accumulate, float* d_weight) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t g = 0; g < groups; g++) {
      const float* d = d_out + r * d_out_stride + g * size;
      const float* from = x + r * x_stride + g * size;
      float* to = d_x + r * d_x_stride + g * size;
      const float scale = scales[r * groups + g];
      Vec products{};
      for_each_vec(size, [&](int64_t i, int64_t n) {
        const Vec v = load_some(from + i, n), d_y = load_some(d + i, n);
        products = fma(d_y * load_some(weight + i, n), v, products);
        store_some(d_weight + i, fma(d_y, v * broadcast(scale), load_some(d_weight + i, n)), n);
      });
      const float pull = scale * scale * scale * sum(products) / float(size);
      for_each_vec(size, [&](int64_t i, int64_t n) {
        const Vec u = load_some(d + i, n) * load_some(weight + i, n);
        const Vec result = u * broadcast(scale) - load_some(from + i, n) * broadcast(pull);
        store_some(to + i, accumulate ? load_some(to + i, n) + result : result, n);
      });
    }
  }
}

static void rotate(int64_t rows, int64_t heads, int64_t head_size, float* x, int64_t stride, const int32_t* positions,
                   const float* cosine, const float* sine, bool inverse) {
  const int64_t half = head_size / 2;
  const Vec direction = broadcast(inverse ? -1.0f : 1.0f);
  for (int64_t r = 0; r < rows; r++) {
    const float *c = cosine + positions[r] * half, *s = sine + positions[r] * half;
    for (int64_t h = 0; h < heads; h++) {
      float *low = x + r * stride + h * head_size, *high = low + half;
      for_each_vec(half, [&](int64_t i, int64_t n) {
        const Vec a = load_some(low + i, n), b = load_some(high + i, n);
        const Vec cos = load_some(c + i, n), sin = load_some(s + i, n) * direction;
        store_some(low + i, a * cos - b * sin, n);
        store_some(high + i, b * cos + a * sin, n);
      });
    }
  }
}

GIGPO_INLINE Vec sigmoid(Vec x) { return broadcast(1.0f) / (broadcast(1.0f) + exp(Vec{} - x)); }

static void swiglu(int64_t rows, int64_t size, const float* gate_up, int64_t stride, float* out, int64_t out_stride) {
  for (int64_t r = 0; r < rows; r++) {
    const float *gate = gate_up + r * stride, *up = gate + size;
    for_each_vec(size, [&](int64_t i, int64_t n) {
      const Vec g = load_some(gate + i, n);
      store_some(out + r * out_stride + i, g * sigmoid(g) * load_some(up + i, n), n);
    });
  }
}

// silu'(g) = σ(g) · (1 + g · (1 - σ(g)))
static void swiglu_backward(int64_t rows, int64_t size, const float* d_out, int64_t d_out_stride, const float* gate_up,
                            int64_t stride, float* d_gate_up, int64_t d_stride) {
  const Vec one = broadcast(1.0f);
  for (int64_t r = 0; r < rows; r++) {
    const float *gate = gate_up + r * stride, *up = gate + size;
    float *d_gate = d_gate_up + r * d_stride, *d_up = d_gate + size;
    for_each_vec(size, [&](int64_t i, int64_t n) {
      const Vec g = load_some(gate + i, n), d = load_some(d_out + r * d_out_stride + i, n), s = sigmoid(g);
      store_some(d_up + i, d * g * s, n);
      store_some(d_gate + i, d * load_some(up + i, n) * s * (one + g * (one - s)), n);
    });
  }
}

static void add(int64_t count, const float* from, float* to) {
  for_each_vec(count, [&](int64_t i, int64_t n) { store_some(to + i, load_some(to + i, n) + load_some(from + i, n), n); });
}

static double squared_norm(int64_t count, const float* x) {
  double total = 0;
  for (int64_t block = 0; block < count; block += 1024) {
    Vec squares{};
    for_each_vec(count - block < 1024 ? count - block : 1024, [&](int64_t i, int64_t n) {
      const Vec v = load_some(x + block + i, n);
      squares = fma(v, v, squares);
    });
    for (int lane = 0; lane < lanes; lane++) total += double(squares[lane]);
  }
  return total;
}

static void adamw(int64_t count, float* weights, const float* gradients, float* first, float* second,
                  float learning_rate, float beta1, float beta2, float epsilon, float weight_decay,
                  float gradient_scale, float correction1, float correction2) {
  const float keep = 1 - learning_rate * weight_decay, rate = learning_rate / correction1;
  const float root = 1 / __builtin_sqrtf(correction2);
  for_each_vec(count, [&](int64_t i, int64_t n) {
    const Vec g = load_some(gradients + i, n) * broadcast(gradient_scale);
    const Vec m = fma(load_some(first + i, n), broadcast(beta1), g * broadcast(1 - beta1));
    const Vec v = fma(load_some(second + i, n), broadcast(beta2), g * g * broadcast(1 - beta2));
    Vec deviation;
    for (int lane = 0; lane < lanes; lane++) deviation[lane] = __builtin_sqrtf(v[lane]);
    const Vec step = m / fma(deviation, broadcast(root), broadcast(epsilon));
    store_some(first + i, m, n);
    store_some(second + i, v, n);
    store_some(weights + i, load_some(weights + i, n) * broadcast(keep) - step * broadcast(rate), n);
  });
}

// 64 uniform numbers in (0, 1): block b of 16 Philox calls, four words each.
static void uniforms(Key key, int32_t token_index, int64_t block, float* out) {
  uint32_t c0[16], c1[16], c2[16], c3[16];
  for (int i = 0; i < 16; i++) c0[i] = uint32_t(block * 16 + i), c1[i] = uint32_t(token_index), c2[i] = 0, c3[i] = 0;
  uint32_t k0 = key.low, k1 = key.high;
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 16; i++) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i], p1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = uint32_t(p1 >> 32) ^ c1[i] ^ k0, c1[i] = uint32_t(p1);
      c2[i] = uint32_t(p0 >> 32) ^ c3[i] ^ k1, c3[i] = uint32_t(p0);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const auto uniform = [](uint32_t word) { return (float(int32_t(word >> 9)) + 0.5f) * 0x1p-23f; };
  for (int i = 0; i < 16; i++) {
    out[4 * i] = uniform(c0[i]), out[4 * i + 1] = uniform(c1[i]);
    out[4 * i + 2] = uniform(c2[i]), out[4 * i + 3] = uniform(c3[i]);
  }
}

// Gumbel-max: argmax of z - log(-log u) over the vocabulary is a draw from softmax(z). The number u of token j is word
// j mod 4 of Philox block j / 4, whatever the instruction set.
static int32_t sample(int64_t vocab, const float* logits, float temperature, Key key, int32_t token_index, float* noise,
                      float* log_prob) {
  const bool greedy = temperature == 0;
  const Vec inverse = broadcast(greedy ? 1 : 1 / temperature);
  Vec highest = broadcast(-__builtin_inff());
  for_each_vec(vocab, [&](int64_t i, int64_t n) {
    for (int lane = 0; lane < n; lane++) highest[lane] = logits[i + lane] > highest[lane] ? logits[i + lane] : highest[lane];
  });
  const float top = max(highest);
  if (!greedy) {
    for (int64_t block = 0; block * 64 < vocab; block++) uniforms(key, token_index, block, noise + block * 64);
  }
  Vec total{};
  float best = -__builtin_inff();
  int64_t chosen = 0;
  for_each_vec(vocab, [&](int64_t i, int64_t n) {
    // Subtracting first is exact for logits near the maximum, where the precision matters.
    const Vec z = (load_some(logits + i, n) - broadcast(top)) * inverse;
    const Vec p = exp(z);
    total += n == lanes ? p : [&] {
      Vec kept{};
      for (int lane = 0; lane < n; lane++) kept[lane] = p[lane];
      return kept;
    }();
    const Vec score = greedy ? z : z - log(Vec{} - log(load(noise + i)));
    // NaN never compares greater, so a broken row still gives a token, with a NaN log-probability.
    if (max(score) > best || n < lanes) {
      for (int lane = 0; lane < n; lane++) {
        if (score[lane] > best) best = score[lane], chosen = i + lane;
      }
    }
  });
  // log of the sum by the same vector code, so that every instruction set gives the same digits it trains with. The maximum
  // alone adds 1 to a sound row's sum.
  const float all = sum(total);
  *log_prob = all >= 1 ? (logits[chosen] - top) * inverse[0] - log(broadcast(all))[0] : __builtin_nanf("");
  return int32_t(chosen);
}

extern const ElementwiseKernels elementwise_kernels = {rms_norm,        rms_norm_backward, rotate, swiglu,
                                                       swiglu_backward, add,               squared_norm,
                                                       adamw,           sample};

}  // namespace gigpo::cpu::GIGPO_ISA_NAME
