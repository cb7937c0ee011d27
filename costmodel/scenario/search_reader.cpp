#include "costmodel/scenario/search_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/key.hpp"

namespace costmodel {

namespace {

using L = SearchLimits;

// Reads a list, or a single value as a list of one.
std::vector<Value> listed(const Value& value, std::string_view key) {
  if (value.is_scalar()) return {value};
  if (value.is_map())
    throw ConfigError(value.mark, fmt::format("{} is a map", key), "write a value or a list [...]");
  return value.items;
}

// The row of a value or a list of values: `read` takes one as it is written.
template <class Item, class Read>
Key<L> values(std::string_view name, std::vector<Item> L::*field,
              const std::function<std::string()>& allowed, std::string_view help, Read read) {
  return key::special<L>(
      name, [allowed] { return allowed() + ", or a list of them"; }, help,
      [=](MapReader& reader, L& limits) {
        const Value* value = reader.optional(name);
        if (value == nullptr) return;
        for (const Value& item : listed(*value, name)) (limits.*field).push_back(read(item));
      });
}

template <class Enum>
Key<L> words(std::string_view name, std::vector<Enum> L::*field,
             std::span<const std::string_view> names, std::string_view help) {
  return values(
      name, field, [names] { return words_text(names); }, help,
      [=](const Value& item) {
        const auto at = std::ranges::find(names, item.text);
        if (at == names.end()) {
          throw ConfigError(item.mark, fmt::format("{}: {} is not known", name, quote(item.text)),
                            known_names(item.text, {names.begin(), names.end()}));
        }
        return static_cast<Enum>(at - names.begin());
      });
}

constexpr IntegerRange zero_stages{0, 3};

// There are some hundred published peaks: of rarer errors they are no evidence.
constexpr double most_confidence = 0.999;

const Keys<L>& search_rows() {
  static const auto keys = key::rows<L>(
      key::whole<L>("max_tp", &L::max_tp, any_size, "largest tensor parallel size"),
      key::whole<L>("max_pp", &L::max_pp, any_size, "largest pipeline parallel size"),
      key::whole<L>("max_cp", &L::max_cp, any_size,
                    "largest context parallel size; absent: a rank keeps 2,048 tokens or more, "
                    "with experts 4,096"),
      key::whole<L>("max_ep", &L::max_ep, any_size, "largest expert parallel size"),
      key::whole<L>("max_vpp", &L::max_vpp, any_size,
                    "most virtual stages of a pipeline rank; absent: 128"),
      key::whole<L>("max_micro_batch", &L::max_micro_batch, any_size, "largest micro-batch"),
      key::whole<L>("top", &L::top, {1, 1000}, "rows of the ranking; absent: 5"),
      key::word<L>("rows", &L::rows, ranking_rows_names,
                   "what a row is of: the plans of one (t, p, d, c, e), or a plan; absent: "
                   "families"),
      key::number<L>("simpler_within", &L::simpler_within, 0, 0.5,
                     "the simplest plan is chosen of those slower than the fastest by no more "
                     "than this share of its time; absent: 0.01"),
      key::number<L>("memory_margin", &L::memory_margin, 0, 0.9,
                     "fraction of device memory that plans leave free; absent: 0.05"),
      key::number<L>("memory_confidence", &L::memory_confidence, 0, most_confidence,
                     "chance wanted that a plan fits, by the errors of published peaks, in place "
                     "of memory_margin; absent: the margin"),
      values(
          "zero", &L::zero, [] { return whole_text(zero_stages); },
          "ZeRO stages tried; absent: all that the stack offers",
          [](const Value& item) {
            return static_cast<int>(read_integer(item, "zero", zero_stages));
          }),
      words("recompute", &L::recompute, recomputation_names,
            "what is tried; absent: all that the stack offers"),
      words("schedules", &L::schedules, schedule_names(),
            "what is tried; absent: 1f1b, interleaved, and zero-bubble where the stack has it"));
  return keys;
}

}  // namespace

SearchLimits read_search(const Value& map) {
  SearchLimits limits;
  read_map(map, "search", search_rows(), limits);
  const Value* margin = map.find("memory_margin");
  if (margin != nullptr && limits.memory_confidence) {
    throw ConfigError(margin->mark,
                      "search.memory_margin and search.memory_confidence are both given",
                      "leave one out: the margin follows from the confidence");
  }
  return limits;
}

std::vector<KeyText> search_keys() { return described(search_rows(), "search."); }

}  // namespace costmodel
