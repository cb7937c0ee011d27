// What people call the keys of a scenario elsewhere: frameworks' flags, and everyday words. A wrong
// key is answered by what it means.
#pragma once

#include <string>
#include <string_view>

namespace costmodel {

// The dotted path of the key that `word` means: "training.global_batch" for "batch_size", and for
// "global_batch" itself; "" if none is known. Upper case and dashes make no difference.
std::string meant_key(std::string_view word);

// Whether `word` is another word for `key`, the last part of a path.
bool means(std::string_view word, std::string_view key);

// Whether `word` is one of `words`, which are apart by blanks.
bool has_word(std::string_view words, std::string_view word);

}  // namespace costmodel
