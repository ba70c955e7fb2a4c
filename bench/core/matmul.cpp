// GF/s of the CPU matrix multiply at the shapes of training and generation; with -DGIGPO_WITH_ONEDNN -ldnnl -lgomp also
// of oneDNN, by turns in the same run. Usage: matmul [threads = 2]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu/isa.h"
#include "core/cpu/matmul.h"
#include "core/random.h"

#ifdef GIGPO_WITH_ONEDNN
#include <dnnl.hpp>
extern "C" void omp_set_num_threads(int);
#endif

using namespace gigpo;
using namespace gigpo::cpu;

enum class Kind { forward, input_gradient, weight_gradient, packed, single };

struct Case {
  const char* name;
  Kind kind;
  int64_t m, n, k;
};

static const Case cases[] = {
    {"forward", Kind::forward, 512, 128, 128},
    {"forward", Kind::forward, 2048, 128, 128},
    {"forward", Kind::forward, 4096, 128, 128},
    {"forward", Kind::forward, 4096, 384, 128},
    {"forward", Kind::forward, 2048, 512, 512},
    {"forward", Kind::forward, 2048, 1408, 512},
    {"forward", Kind::forward, 2048, 512, 1408},
    {"forward", Kind::forward, 8192, 1536, 512},
    {"forward", Kind::forward, 1000, 5000, 512},
    {"dX", Kind::input_gradient, 2048, 128, 384},
    {"dX", Kind::input_gradient, 2048, 512, 512},
    {"dX", Kind::input_gradient, 2048, 512, 1408},
    {"dW", Kind::weight_gradient, 128, 128, 2048},
    {"dW", Kind::weight_gradient, 384, 128, 4096},
    {"dW", Kind::weight_gradient, 512, 512, 2048},
    {"dW", Kind::weight_gradient, 1408, 512, 2048},
    {"dW", Kind::weight_gradient, 512, 1408, 8192},
    {"packed", Kind::packed, 1, 1408, 512},
    {"packed", Kind::packed, 4, 1408, 512},
    {"packed", Kind::packed, 8, 1408, 512},
    {"packed", Kind::packed, 16, 1408, 512},
    {"packed", Kind::packed, 64, 1408, 512},
    {"packed", Kind::packed, 64, 512, 1408},
    {"packed", Kind::packed, 1, 128, 128},
    {"packed", Kind::packed, 16, 128, 128},
    {"packed", Kind::packed, 64, 128, 128},
    {"packed", Kind::packed, 1, 4864, 896},
    {"packed", Kind::packed, 16, 4864, 896},
    {"single", Kind::single, 32, 32, 64},
    {"single", Kind::single, 16, 16, 64},
    {"single", Kind::single, 1, 256, 64},
    {"single", Kind::single, 64, 64, 64},
    {"single", Kind::single, 256, 256, 64},
};

// Fills with values in (-1, 1).
static std::vector<float> values(int64_t count, uint32_t stream) {
  std::vector<float> v(count);
  for (int64_t i = 0; i < count; i++) v[i] = 2 * open_uniform(philox({1, 2}, uint32_t(i), stream, 0, 0).word[0]) - 1;
  return v;
}

// Seconds for one call: the median of several batches, each long enough to time.
class Timer {
 public:
  explicit Timer(std::function<void()> call) : call_(std::move(call)) {
    call_();
    for (double seconds = 0; seconds < 0.01; calls_ *= 2) seconds = batch() * calls_;
  }
  void measure() {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the other library's threads must stop to spin
    call_();
    seconds_.push_back(batch());
  }
  double median() {
    std::sort(seconds_.begin(), seconds_.end());
    return seconds_[seconds_.size() / 2];
  }

 private:
  double batch() {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls_; i++) call_();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / double(calls_);
  }
  std::function<void()> call_;
  int64_t calls_ = 1;
  std::vector<double> seconds_;
};

#ifdef GIGPO_WITH_ONEDNN
// X[m][k] · W[n][k]ᵀ with W in the layout that oneDNN likes best.
class DnnlPacked {
 public:
  DnnlPacked(int64_t m, int64_t n, int64_t k, float* x, float* w, float* y) {
    using dnnl::memory;
    using Tag = memory::format_tag;
    const auto type = memory::data_type::f32;
    const memory::desc x_desc({m, k}, type, Tag::ab), w_desc({k, n}, type, Tag::ba), y_desc({m, n}, type, Tag::ab);
    const dnnl::matmul::primitive_desc primitive({x_desc, memory::desc({k, n}, type, Tag::any), y_desc}, engine_);
    memory plain(w_desc, engine_, w);
    memory weight(primitive.weights_desc(), engine_);
    dnnl::reorder(plain, weight).execute(stream_, plain, weight);
    matmul_ = dnnl::matmul(primitive);
    arguments_ = {{DNNL_ARG_SRC, memory(x_desc, engine_, x)},
                  {DNNL_ARG_WEIGHTS, weight},
                  {DNNL_ARG_DST, memory(y_desc, engine_, y)}};
  }
  void run() {
    matmul_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul matmul_;
  std::unordered_map<int, dnnl::memory> arguments_;
};
#endif

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  ThreadPool pool(threads);
  std::printf("%s, %d threads, GF/s\n%-10s %6s %6s %6s %9s", isa_name(isa()), threads, "", "m", "n", "k", "gigpo");
#ifdef GIGPO_WITH_ONEDNN
  std::printf(" %9s %9s", "oneDNN", "ratio");
#endif
  std::printf("\n");
  for (const Case& one : cases) {
    const auto [name, kind, m, n, k] = one;
    std::vector<float> a = values(m * k, 0), b = values(n * k, 1), c(m * n);
    const bool ta = kind == Kind::weight_gradient, tb = kind != Kind::weight_gradient && kind != Kind::input_gradient;
    const MatmulArguments x{m, n, k, a.data(), ta ? m : k, ta, b.data(), tb ? k : n, tb, c.data(), n, false, nullptr};
    PackedWeight weight;
    if (kind == Kind::packed) weight.pack(pool, b.data(), n, k);
    Timer ours([&] {
      if (kind == Kind::packed)
        matmul_packed(pool, m, a.data(), k, weight, c.data(), n, nullptr, false);
      else if (kind == Kind::single)
        matmul_single(x);
      else
        matmul(pool, x);
    });
#ifdef GIGPO_WITH_ONEDNN
    std::vector<float> d(m * n);
    DnnlPacked packed(m, n, k, a.data(), b.data(), d.data());
    omp_set_num_threads(kind == Kind::single ? 1 : threads);
    Timer theirs([&] {
      if (kind == Kind::packed)
        packed.run();
      else
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a.data(), x.lda, b.data(), x.ldb, 0, d.data(), n);
    });
#endif
    for (int i = 0; i < 7; i++) {
      ours.measure();
#ifdef GIGPO_WITH_ONEDNN
      theirs.measure();
#endif
    }
    const double work = 2e-9 * double(m) * double(n) * double(k);
    std::printf("%-10s %6ld %6ld %6ld %9.1f", name, long(m), long(n), long(k), work / ours.median());
#ifdef GIGPO_WITH_ONEDNN
    std::printf(" %9.1f %9.2f", work / theirs.median(), ours.median() > 0 ? theirs.median() / ours.median() : 0);
    for (int64_t i = 0; i < m * n; i++)
      if (!(std::abs(c[i] - d[i]) <= 1e-3f * std::max(1.0f, std::abs(d[i])))) {
        std::printf("  DIFFERS at %ld: %g, not %g", long(i), c[i], d[i]);
        break;
      }
#endif
    std::printf("\n");
    std::fflush(stdout);
  }
}
