// What translations of Hugging Face config.json files share. Of use inside costmodel only.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

class HfTranslation {
 protected:
  // `text` outlives this.
  explicit HfTranslation(const Value& text) : reader_(text, "config.json") {
    out_.kind = Value::Kind::map;
    out_.mark = text.mark;
  }

  // Our key, at the place of theirs.
  template <class T>
  void put(const std::string& ours, const T& value, std::string_view hf_key) {
    out_.set(ours, scalar_value(fmt::format("{}", value), reader_.mark_of(hf_key)));
  }

  // Throws ConfigError where it is missing or out of the range.
  std::int64_t size(const std::string& ours, std::string_view hf_key, IntegerRange range) {
    reader_.required(hf_key);
    const std::int64_t value = *reader_.integer(hf_key, range);
    put(ours, value, hf_key);
    return value;
  }

  MapReader reader_;  // no finish(): config.json has many keys that change no shape
  Value out_;
};

}  // namespace costmodel
