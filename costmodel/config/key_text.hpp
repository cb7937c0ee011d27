// A key of a configuration as people read it: a line of `shardplan list keys`, and what a value may
// be in words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

struct KeyText {
  std::string name;     // "memory.context_bytes"
  std::string allowed;  // "0 to 1e+12 B"
  std::string help;     // a sentence without its full stop
};

std::string whole_text(IntegerRange range);                               // "1 to 1,024"
std::string number_text(Dimension dimension, double least, double most);  // "0 to 1 s"
std::string words_text(std::span<const std::string_view> words);          // "none, full"

// An entry of an example of a map: "none" of the words above, "..." for what is no word.
std::string example_entry(std::string_view name, const std::string& allowed, bool first);

}  // namespace costmodel
