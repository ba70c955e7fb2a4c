// LoRA (Hu et al., arXiv 2106.09685): beside each frozen linear layer a narrow pair, y = W x + (alpha / rank) · B A x, with A
// [rank][in] and B [out][rank]. B starts at zero, so that the policy starts as the model it adapts. Names are PEFT's.
#pragma once
#include "core/model.h"

namespace gigpo {

struct AdapterConfig {
  int64_t rank = 0;  // 0: no adapter, all weights are trained
  double alpha = 0;

  explicit operator bool() const { return rank > 0; }
  float scale() const { return float(alpha / double(rank)); }
};

// The pairs beside one multiplication of the transformer, which may make several of the model's projections at once: their A
// lie one on the other, [parts · rank][in].
struct LinearAdapterLayout {
  int64_t a;
  std::vector<int64_t> b, rows;  // of each part
};

// A critic's head is trained whole, and so it is the adapter's: its model has none.
struct AdapterLayout {
  struct Layer {
    LinearAdapterLayout qkv, output, gate_up, down;
  };
  std::vector<Parameter> parameters;
  std::vector<Layer> layers;
  int64_t head = 0;  // a critic's, last
  int64_t size = 0;

  AdapterLayout(const ModelConfig& config, const AdapterConfig& adapter);

  // The pair beside a projection of the model, by the projection's name; null where it has none.
  struct Pair {
    const Parameter *a, *b;
  };
  Pair pair_of(const std::string& projection) const;
};

}  // namespace gigpo
