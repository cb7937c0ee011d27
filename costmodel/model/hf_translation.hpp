// Reads one Hugging Face config.json by the rows of its family (hf_families.hpp) into the keys of a
// model map. Internal to costmodel.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
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

inline constexpr IntegerRange hf_sizes{1, 1'000'000'000}, hf_counts{1, 100'000};

// A row is one word; rows stand in a text with blanks between them. A later row takes the place of
// an earlier one of the same key.
//   ours=theirs        the field must be there; ours is the key of a model (model_keys.hpp)
//   ours=theirs:usual  the class's value where it is absent. Its form is the value's type: true or
//                      false, a number with a point, else an integer; or it is a key that an
//                      earlier row set, h/a (hidden / heads) or 4h
//   ours=theirs?       an integer; without the field no key is set
//   ours:value         whatever the file has
//   a|b                for theirs: the first that is there
//   theirs             a field that costs nothing or that the class does not read
//   !theirs            a choice that no key describes: reported where it is not the usual one
//   -ours              no row for this key
// A list in place of a value holds one for each layer, all of them equal, but for moe_every, whose
// first ones may be zero. null is as if the field were not there, but a window, a chunk, shared
// experts and first dense layers of null are none. Some keys read as their values need: activation
// and router_* translate words, dropout is the largest of its fields, attention_pattern has
// layer_types or the distance between layers of full attention, and mtp_layers is reported, not
// set.
class HfTranslation {
 public:
  // `text` must outlive this object.
  HfTranslation(const Value& text, std::string_view model_type);

  // Reads rows, of all texts together. Throws ConfigError.
  void read(const std::vector<std::string_view>& rows);
  // The result, with what all families share: rotary positions, length, epsilon, source.
  HfModel take();

  // For the hooks of families. Writes Shardplan's key `ours` with the place of the field.
  template <class T>
  void put(const std::string& ours, const T& value, std::string_view field = "model_type") {
    out_.set(ours, scalar_value(fmt::format("{}", value), reader_.mark_of(field)));
    fields_[ours] = field;
  }
  bool is_null(std::string_view field) const;  // written as null
  void drop(std::string_view ours) { out_.erase(ours); }
  // The integer, and the text, that a key was set to; 0 and "" where it was not.
  std::int64_t number(std::string_view ours) const;
  std::string text(std::string_view ours) const;
  bool flag(std::string_view field, bool usual) { return reader_.boolean(field).value_or(usual); }
  std::int64_t integer(std::string_view field, std::int64_t usual, std::int64_t least = 1) {
    return reader_.integer(field, {least, hf_sizes.most}).value_or(usual);
  }
  void report(std::string what) { omitted_.push_back(std::move(what)); }
  // The same, and in the model's `source`.
  void note(const std::string& what);
  // Puts shared_experts: the width that the field has over that of one expert. Throws ConfigError
  // when it is no multiple. `wide` is the field whose place the key takes.
  void put_shared(std::int64_t width, std::string_view field, const char* wide);
  // Puts `attention_pattern` with as few letters as repeat; nothing where all layers are uniform,
  // and F, which then have no window, or S. Without a window or chunk, S and C are F.
  void put_pattern(const std::string& letters, std::string_view field);
  [[noreturn]] void refuse(std::string_view field, const std::string& wrong,
                           const std::string& remedy) const {
    throw ConfigError(reader_.mark_of(field), wrong, remedy);
  }

  MapReader reader_;  // no finish(): config.json has many keys that do not affect shapes

 private:
  struct Row {
    std::string_view ours, theirs, usual;
    bool optional = false;
  };
  static Row parse(std::string_view word);
  void read_row(const Row& row);
  bool put_first_dense(std::string_view field, const Value& layers);
  void report_choice(std::string_view field);
  void put_value(const Row& row, std::string_view field, const Value& value);
  void put_usual(const Row& row, std::string_view field);
  void dropout(const Row& row);
  void pattern(const Row& row);
  void predictions(std::string_view field);
  void check_heads();
  void serving();

  const Value& file_;
  Value out_;
  std::map<std::string, std::string, std::less<>> fields_;  // of each key, whence it is
  std::string source_;
  std::vector<std::string> omitted_;
};

// Whether a field of a config.json is known to change no size, no operator and no cost: names of
// tokens and types, initial values, epsilons, what only generation reads.
bool is_costless_hf_field(std::string_view key);

}  // namespace costmodel
