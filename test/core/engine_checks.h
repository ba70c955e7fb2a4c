// Checks of the engine on any device, with tiny random models. test/core/engine_test.cpp runs them on the CPU; programs
// for other devices pass their own factory.
#pragma once
#include "test/core/distribution_checks.h"
#include "test/core/generation_checks.h"
#include "test/core/memory_checks.h"
#include "test/core/sharing_checks.h"
#include "test/core/streaming_checks.h"
#include "test/core/training_checks.h"

namespace gigpo::test {

inline void check_engine(const DeviceFactory& make_device, const ModelConfig& config, const Bounds& bounds) {
  if (bounds.slope > 0) part([&] { check_gradient(make_device, config, bounds); });
  part([&] { check_micro_batches(make_device, config, bounds); });
  part([&] { check_many_spans(make_device, config, bounds); });
  part([&] { check_many_spans(make_device, config, bounds, {3, 5}); });
  part([&] { check_shared_prefixes(make_device, config, bounds); });
  part([&] { check_distributions(make_device, config, bounds); });
  part([&] { check_training(make_device, config, bounds); });
  part([&] { check_generation(make_device, config, bounds); });
  part([&] { check_streams(make_device, config, bounds); });
  part([&] { check_early_ends(make_device, config); });
  part([&] { check_recompute(make_device, config, {}); });
  part([&] { check_untrained(make_device, config); });
  for (const AdapterConfig& adapter : {AdapterConfig{3, 5}, ragged(config, false), ragged(config, true)})
    part([&] { check_adapter(make_device, config, bounds, adapter); });
  part([&] { check_shared_region(make_device, config); });
  part([&] { check_plan(make_device, config); });
}

}  // namespace gigpo::test
