// LoRA (Hu et al., arXiv 2106.09685): beside a frozen linear layer a narrow pair, y = W x + scale · B A x, with A [rank][in] and
// B [out][rank]. B starts at zero, so that the policy starts as the model it adapts. Which projections have a pair, and of what size,
// is free; parameters may also be trained whole, in copies. Names are PEFT's.
#pragma once
#include <array>
#include <map>
#include <set>

#include "core/model.h"

namespace gigpo {

// The matrices of a layer that may have a pair, in the order of ModelLayout.
struct Projection {
  enum : int { query, key, value, output, gate, up, down, count };
};

struct AdapterPair {
  int64_t rank = 0;  // 0: none
  float scale = 0;
};

struct AdapterConfig {
  // Of every projection, scaled by alpha / rank, unless `layers` is filled.
  int64_t rank = 0;
  double alpha = 0;
  std::vector<std::array<AdapterPair, Projection::count>> layers;  // one entry a layer
  std::set<std::string> whole;  // the model's parameters that are trained in copies: the embedding, the head, norms
  bool tied = false;            // the head is the embedding's copy, not the model's own embedding

  explicit operator bool() const { return rank > 0 || !layers.empty(); }
  AdapterPair pair(int64_t layer, int projection) const {
    return layers.empty() ? AdapterPair{rank, rank > 0 ? float(alpha / double(rank)) : 0} : layers[layer][projection];
  }
  // Ranks of the projections from `first` to `last`, which one multiplication makes, together.
  int64_t ranks(int64_t layer, int first, int last) const {
    int64_t sum = 0;
    for (int p = first; p <= last; p++) sum += pair(layer, p).rank;
    return sum;
  }
  // The most of any multiplication.
  int64_t widest() const;
  bool has_whole(const std::string& name) const { return whole.count(name) > 0; }
};

// The pairs beside one multiplication of the transformer, which may make several of the model's projections at once: their A
// lie one on the other, [ranks][in].
struct LinearAdapterLayout {
  struct Part {
    int64_t b, rows, column;  // of B; where its outputs begin among those of the multiplication
    int64_t first, rank;      // rows of A
    float scale;
  };
  int64_t a = 0, ranks = 0;
  std::vector<Part> parts;
};

// A critic's head is trained whole, and so it is the adapter's: its model has none. Models that differ in their heads alone have
// the same offsets up to the head, which comes last.
struct AdapterLayout {
  struct Layer {
    LinearAdapterLayout qkv, output, gate_up, down;
  };
  std::vector<Parameter> parameters;
  std::vector<Layer> layers;
  std::map<int64_t, int64_t> whole;  // offsets of parameters but the head that are trained whole: by the model's, the copies'
  int64_t head = -1;                 // that is trained whole; -1: none is
  int64_t before_head = 0;           // the size of all else
  int64_t size = 0;

  AdapterLayout(const ModelConfig& config, const AdapterConfig& adapter);

  // The pair beside a projection of the model, by the projection's name; null where it has none.
  struct Pair {
    const Parameter *a, *b;
    float scale;
  };
  Pair pair_of(const std::string& projection) const;
  // The copy of a parameter of the model that is trained whole; null where it is not.
  const Parameter* copy_of(const std::string& name) const { return find("base_model.model." + name); }

 private:
  std::map<std::string, float> scales_;  // by the names of B
  const Parameter* find(const std::string& name) const;
};

// The model that adapter and model make together: its head is its own where one of the two tied parameters is trained without the other.
ModelConfig merged_config(ModelConfig config, const AdapterConfig& adapter);

}  // namespace gigpo
