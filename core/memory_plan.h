// How much device memory a model and its options will take, by the sizes that its passes will ask for.
#pragma once
#include <string>

#include "core/engine.h"

namespace gigpo {

// Bytes.
struct MemoryPlan {
  int64_t weights = 0;      // as the device computes with them, their fp32 originals where they are trained, the adapter and tables
  int64_t packed = 0;       // weights once more, in the form that the device multiplies few rows with
  int64_t gradients = 0;
  int64_t moments = 0;
  int64_t reference = 0;
  int64_t critic = 0;       // its weights, gradients and moments; its activations lie where the policy's do
  int64_t activations = 0;  // of one micro-batch, or of the longest row where that was given and is longer
  int64_t longest = 0;      // of the longest row that can be trained, and its scratch beyond a micro-batch's
  int64_t cache = 0;        // keys and values
  int64_t sampling = 0;     // what a step of sampling computes in, at most
  int64_t scratch = 0;      // beside activations and steps: what attention computes in, masks of logits, and the results of the head
  bool shared = false;      // cache and activations take turns in one place
  Recompute recompute = Recompute::none;
  int64_t available = 0;    // what there was for it; set by fit_options
  int64_t longest_row = 0;  // tokens of the longest row that can be trained; set by fit_options
  std::string without_library;  // as Device has it, where an engine has been opened

  int64_t total() const {
    return weights + packed + gradients + moments + reference + critic + sampling + scratch +
           (shared ? std::max(activations, cache) : activations + cache);
  }
};

// What an engine will be asked for, and must have memory for.
struct Purpose {
  bool trained = true;
  bool reference = false;  // a frozen copy
  bool critic = false;     // where it is trained
};

// The micro-batch is taken at its largest: every token is a reply's.
MemoryPlan plan_memory(const ModelConfig& config, const EngineOptions& options, const DeviceTraits& device, const Purpose& purpose);

struct FittedEngine {
  EngineOptions options;
  MemoryPlan plan;
};

// Fills in what is 0 (cache_bytes, step_tokens, region_bytes, longest_row) as suits the device and its memory, and recompute where
// that is left open. Throws Error OUT_OF_MEMORY, with the plan and with settings that would fit, where more than `available` bytes are needed.
FittedEngine fit_options(const ModelConfig& config, EngineOptions options, const DeviceTraits& device, const Purpose& purpose,
                         int64_t available);

// "weights 3.1 GB, gradients 6.2 GB, …"
std::string describe(const MemoryPlan& plan);

}  // namespace gigpo
