// LoRA adapters (Hu et al., arXiv 2106.09685). A frozen linear layer gets a pair of low-rank matrices: y = W x + scale · B A x, with
// A [rank][in] and B [out][rank]. B starts at zero, so the policy starts equal to the base model. Each projection may have a pair of
// any rank. Other parameters may be trained in full, as copies. Parameter names follow PEFT.
#pragma once
#include <array>
#include <map>
#include <set>

#include "core/model.h"

namespace gigpo {

// Matrices of a layer that may have an adapter pair, in the order of ModelLayout.
struct Projection {
  enum : int { query, key, value, output, gate, up, down, count };
};

struct AdapterPair {
  int64_t rank = 0;  // 0: none
  float scale = 0;
};

struct AdapterConfig {
  // Rank of the pairs of every projection, scaled by alpha / rank. Ignored if `layers` is not empty.
  int64_t rank = 0;
  double alpha = 0;
  std::vector<std::array<AdapterPair, Projection::count>> layers;  // one entry per layer
  std::set<std::string> whole;  // names of parameters that are trained in full, as copies: embedding, head, norms
  bool tied = false;            // the head uses the trained copy of the embedding, not the model's frozen embedding

  // Throws Error BAD_ARGUMENT if a rank is out of its bounds.
  void check() const;

  explicit operator bool() const { return rank > 0 || !layers.empty(); }
  AdapterPair pair(int64_t layer, int projection) const {
    return layers.empty() ? AdapterPair{rank, rank > 0 ? float(alpha / double(rank)) : 0} : layers[layer][projection];
  }
  // Sum of the ranks of the projections `first` to `last`, which one multiplication computes together.
  int64_t ranks(int64_t layer, int first, int last) const {
    int64_t sum = 0;
    for (int p = first; p <= last; p++) sum += pair(layer, p).rank;
    return sum;
  }
  // Largest sum of ranks of any multiplication.
  int64_t widest() const;
  bool has_whole(const std::string& name) const { return whole.count(name) > 0; }
};

// Layout of the adapter pairs of one multiplication, which may compute several projections of the model at once. Their matrices A are
// stacked: [ranks][in].
struct LinearAdapterLayout {
  struct Part {
    int64_t b, rows, column;  // offset and rows of B; first column of its outputs among those of the multiplication
    int64_t first, rank;      // first row in the stacked A, and number of rows
    float scale;
  };
  int64_t a = 0, ranks = 0;
  std::vector<Part> parts;
};

// Layout of an adapter in one flat buffer. A critic's head is trained in full and therefore belongs to the adapter, not to the frozen
// model. The head comes last, so adapters of models that differ only in the head have equal offsets up to the head.
struct AdapterLayout {
  struct Layer {
    LinearAdapterLayout qkv, output, gate_up, down;
  };
  std::vector<Parameter> parameters;
  std::vector<Layer> layers;
  std::map<int64_t, int64_t> whole;  // parameters trained in full, without the head: offset in the model -> offset of the copy
  int64_t head = -1;                 // offset of a head that is trained in full; -1: none
  int64_t before_head = 0;           // size of everything except the head, in elements
  int64_t size = 0;

  AdapterLayout(const ModelConfig& config, const AdapterConfig& adapter);

  // Adapter pair of a projection of the model, by the projection's name. Both pointers are null if there is none.
  struct Pair {
    const Parameter *a, *b;
    float scale;
  };
  Pair pair_of(const std::string& projection) const;
  // Trained copy of a parameter of the model; null if the parameter is not trained in full.
  const Parameter* copy_of(const std::string& name) const { return find("base_model.model." + name); }

 private:
  std::map<std::string, float> scales_;  // by the name of B
  const Parameter* find(const std::string& name) const;
};

// Configuration of the model with the adapter merged in. The head is untied if only one of the two tied parameters is trained.
ModelConfig merged_config(ModelConfig config, const AdapterConfig& adapter);

}  // namespace gigpo
