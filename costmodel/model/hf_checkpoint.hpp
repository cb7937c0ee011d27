// How a checkpoint stores its weights, by the quantization_config of its config.json. Internal to
// costmodel.
#pragma once

#include <cstdint>
#include <string_view>

#include "costmodel/config/value.hpp"

namespace costmodel {

struct StoredWeights {
  std::string_view format;  // a word of `checkpoint` (model_keys.hpp); empty: none of them
  // What the file keeps in 16 bits: the products of attention; all but routed experts; of the first
  // and of the last layers so many.
  bool attention = false, dense = false;
  std::int64_t layers = 0;
};

// What is kept is named by modules_to_not_convert, ignore, ignored_layers or exclude_modules: parts
// of names, with * for any characters, or (after "re:", as compressed-tensors writes) expressions,
// of which dots, stars and alternatives in brackets are understood. `experts`: the layers are those
// of a mixture. `text` must outlive the result.
StoredWeights stored_weights(const Value& text, std::int64_t layers, bool experts);

}  // namespace costmodel
