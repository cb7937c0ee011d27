// Base class of the translations of Hugging Face config.json files. Internal to costmodel.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

class HfTranslation {
 protected:
  // `text` must outlive this object.
  explicit HfTranslation(const Value& text) : reader_(text, "config.json") {
    out_.kind = Value::Kind::map;
    out_.mark = text.mark;
  }

  // Writes Shardplan's key `ours` with the place of the Hugging Face key.
  template <class T>
  void put(const std::string& ours, const T& value, std::string_view hf_key) {
    out_.set(ours, scalar_value(fmt::format("{}", value), reader_.mark_of(hf_key)));
  }

  // Copies an integer. Throws ConfigError when it is missing or out of range.
  std::int64_t size(const std::string& ours, std::string_view hf_key, IntegerRange range) {
    reader_.required(hf_key);
    const std::int64_t value = *reader_.integer(hf_key, range);
    put(ours, value, hf_key);
    return value;
  }

  MapReader reader_;  // no finish(): config.json has many keys that do not affect shapes
  Value out_;
};

}  // namespace costmodel
