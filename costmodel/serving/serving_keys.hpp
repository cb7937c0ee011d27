// The keys of a scenario's `serving`, as rows that are read and described alike.
#pragma once

#include "costmodel/config/key.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// `stack` is read before them, for it says the limits that hold where a key is absent.
const Keys<ServingSpec>& serving_rows();

// Of `plan.disaggregation`.
const Keys<Disaggregation>& disaggregation_rows();

// "serving.input_tokens" and so on, and the keys of `plan` that only serving has.
std::vector<KeyText> serving_keys();

}  // namespace costmodel
