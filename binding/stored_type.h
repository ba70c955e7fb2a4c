#pragma once
#include "binding/convert.h"
#include "core/stored_floats.h"

namespace gigpo {

// Number format by its name in GGUF.
inline Stored stored_of(const Napi::Value& name) {
  return choice<Stored>(name, "type",
                        {{"F32", Stored::f32},
                         {"F16", Stored::f16},
                         {"BF16", Stored::bf16},
                         {"Q4_0", Stored::q4_0},
                         {"Q4_1", Stored::q4_1},
                         {"Q5_0", Stored::q5_0},
                         {"Q5_1", Stored::q5_1},
                         {"Q8_0", Stored::q8_0},
                         {"Q2_K", Stored::q2_k},
                         {"Q3_K", Stored::q3_k},
                         {"Q4_K", Stored::q4_k},
                         {"Q5_K", Stored::q5_k},
                         {"Q6_K", Stored::q6_k},
                         {"IQ4_NL", Stored::iq4_nl},
                         {"IQ4_XS", Stored::iq4_xs}});
}

}  // namespace gigpo
