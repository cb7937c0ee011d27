// Vocabularies of published tokenizers, which scripts name and give no size of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace planner {

// Rows of the embedding of the models that `tokenizer` belongs to ("meta-llama/Llama-3.1-8B", a
// path, "GPT2BPETokenizer"), as their config.json has them (vocab_size), before padding: the
// longest of the table's names that stands in it, in any case. Nothing for a name of none.
std::optional<std::int64_t> vocabulary_of(std::string_view tokenizer);

}  // namespace planner
