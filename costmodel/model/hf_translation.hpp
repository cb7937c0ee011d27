// Base class of the translations of Hugging Face config.json files. Internal to costmodel.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

// What a family makes of its file.
struct HfModel {
  Value keys;                        // Shardplan's, each at its field's place
  std::vector<std::string> omitted;  // a sentence for each choice that no key describes
  std::vector<std::string> unread;   // fields with a value that may cost something
};

struct HfFamily {
  std::string_view model_type, architecture;  // either names it
  HfModel (*read)(const Value& map);
};

// Sizes that every file may have.
inline constexpr IntegerRange hf_counts{1, 100'000}, hf_widths{1, 4'194'304}, hf_small{1, 65'536},
    hf_inner{1, 16'777'216}, hf_tokens{1, 1'000'000'000};

class HfTranslation {
 public:
  HfModel take();

 protected:
  void serving();
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

  // The same with the class's default for a missing one.
  std::int64_t size_or(const std::string& ours, std::string_view hf_key, IntegerRange range,
                       std::int64_t usual);
  // The first of the keys that is there, else the first: older files have other spellings.
  std::string_view spelled(std::string_view usual, std::string_view other);
  bool flag(std::string_view hf_key, bool usual) { return reader_.boolean(hf_key).value_or(usual); }
  void tell(std::string what) { omitted_.push_back(std::move(what)); }
  // Puts the largest of these, each `usual` where it is missing.
  void dropout(const std::vector<std::string_view>& hf_keys, double usual);
  // Puts `activation`. Throws ConfigError for an unknown one.
  void activation(std::string_view hf_key, std::string_view usual);
  // Puts the base of rotary positions, the part that is rotated, and their scaling.
  void rotary();
  // The map of transformers 5; of kinds of layers that of full attention. Null: none.
  const Value* rope_parameters();
  // Puts the scaling that `rope_scaling`, or rope_parameters of transformers 5, has; reports what
  // has no key.
  void rope_scaling();
  // Leaves out the usual base and part: over the file other positions may be written.
  void put_rotation(std::optional<double> base, std::string_view base_key,
                    std::optional<double> part, std::string_view part_key);
  // The letters of `layer_types`, where the file has it, else those of `usual` (F, S, D).
  void attention_pattern(std::string usual, std::int64_t layers);
  // Puts `attention_pattern` with as few letters as repeat; nothing where all layers are alike, and
  // F or S.
  void put_pattern(const std::string& letters, std::int64_t layers, std::string_view hf_key);

  MapReader reader_;  // no finish(): config.json has many keys that do not affect shapes
  Value out_;

 private:
  std::vector<std::string> omitted_;
};

// The families' classes have read(choice...).
template <class Family, auto... choice>
HfModel read_hf_as(const Value& map) {
  Family family(map);
  family.read(choice...);
  return family.take();
}

// Whether a field of a config.json is known to change no size, no operator and no cost: names of
// tokens and types, initial values, epsilons, what only generation reads.
bool is_costless_hf_field(std::string_view key);

}  // namespace costmodel
