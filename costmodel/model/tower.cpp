#include "costmodel/model/tower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "costmodel/base/units.hpp"
#include "costmodel/model/parameter_count.hpp"

namespace costmodel {

namespace {

using enum StepKind;

// A word of each kind, in the order of the enumeration, and the numbers after it: "linear 1024
// bias".
struct StepWord {
  StepKind kind;
  std::string_view word;
  int numbers;
  std::string_view help;
};
constexpr std::array words{
    StepWord{linear, "linear", 1, "a product to so many columns, `bias` after it"},
    StepWord{convolution, "conv", 3, "columns, taps, stride"},
    StepWord{gated, "gated", 1, "a gated product to so many columns and back"},
    StepWord{tokens, "tokens", 1, "so many learned tokens more"},
    StepWord{drop, "drop", 1, "so many tokens less"},
    StepWord{positions, "positions", 1, "a table of so many rows"},
    StepWord{layernorm, "layernorm", 0, ""},
    StepWord{rmsnorm, "rmsnorm", 0, ""},
    StepWord{gelu, "gelu", 0, ""},
    StepWord{silu, "silu", 0, ""},
    StepWord{merge, "merge", 1, "so many tokens become one as wide as all"},
    StepWord{pool, "pool", 1, "their mean"}};

static_assert([] {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].kind != static_cast<StepKind>(i)) return false;
  return true;
}());

constexpr std::int64_t most_columns = 4'194'304;
constexpr std::int64_t most_merged = 1'000'000'000'000;  // which no tower has: no overflow

std::optional<std::int64_t> parse_size(const std::string& word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, fault] = std::from_chars(word.data(), end, value);
  const bool complete = fault == std::errc() && rest == end;
  return complete && value >= 1 && value <= most_columns ? std::optional(value) : std::nullopt;
}

// What a step makes of its input's sizes, and its parameters.
void settle(StepShape& s) {
  const auto rows = s.step.size, columns = s.columns;
  const auto k = static_cast<double>(columns), n = static_cast<double>(s.step.size);
  s.out_rows = s.rows;
  s.out_columns = columns;
  switch (s.step.kind) {
    case linear:
      s.out_columns = s.step.size;
      s.parameters = k * n + (s.step.bias ? n : 0);
      return;
    case convolution:
      s.out_rows = ceil_div(s.rows, s.step.stride);
      s.out_columns = s.step.size;
      s.parameters = k * n * static_cast<double>(s.step.taps) + n;
      return;
    case gated: s.parameters = 3 * k * n; return;
    case tokens: s.out_rows += rows; [[fallthrough]];
    case positions: s.parameters = n * k; return;
    case drop: s.out_rows = std::max<std::int64_t>(1, s.rows - rows); return;
    case layernorm: s.parameters = 2 * k; return;
    case rmsnorm: s.parameters = k; return;
    case merge: s.out_columns = std::min(columns, most_merged / rows) * rows; [[fallthrough]];
    case pool: s.out_rows = ceil_div(s.rows, rows); return;
    case gelu:
    case silu: return;
  }
}

double parameters_of(const std::vector<StepShape>& shapes) {
  double sum = 0;
  for (const StepShape& shape : shapes) sum += shape.parameters;
  return sum;
}

}  // namespace

std::string steps_help() {
  std::string text = "a list of ";
  for (const StepWord& row : words) {
    text += fmt::format("{}{}{}", row.kind == linear ? "" : ", ", row.word,
                        row.numbers == 3   ? " N K S"
                        : row.numbers == 1 ? " N"
                                           : "");
    if (row.kind == linear) text += " [bias]";
  }
  return text;
}

std::optional<TowerStep> parse_step(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  for (std::string part; parts.size() < 5 && in >> part;) parts.push_back(part);
  const auto row =
      parts.empty() ? words.end() : std::ranges::find(words, parts.front(), &StepWord::word);
  if (row == words.end()) return std::nullopt;
  TowerStep step{.kind = row->kind};
  const auto numbers = static_cast<std::size_t>(row->numbers);
  step.bias = row->kind == linear && parts.size() == 3 && parts[2] == "bias";
  if (parts.size() != 1 + numbers + (step.bias ? 1 : 0)) return std::nullopt;
  const std::array fields{&step.size, &step.taps, &step.stride};
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto value = parse_size(parts[i + 1]);
    if (!value) return std::nullopt;
    *fields[i] = *value;
  }
  return step;
}

std::string to_string(const TowerStep& step) {
  const StepWord& row = words[static_cast<std::size_t>(step.kind)];
  std::string text(row.word);
  if (row.numbers > 0) text += fmt::format(" {}", step.size);
  if (row.numbers > 1) text += fmt::format(" {} {}", step.taps, step.stride);
  return step.bias ? text + " bias" : text;
}

std::int64_t TowerSpec::input_tokens(std::int64_t size) const {
  if (input == TowerInput::audio) return std::max<std::int64_t>(1, size * frames_per_second);
  const std::int64_t side = std::max<std::int64_t>(1, size / patch);
  return side * side;
}

std::span<const TowerSpec> towers_of(const ModelSpec& model) {
  return model.towers == nullptr ? std::span<const TowerSpec>()
                                 : std::span<const TowerSpec>(model.towers->all);
}

std::vector<StepShape> shapes_of(std::span<const TowerStep> steps, std::int64_t rows,
                                 std::int64_t columns) {
  std::vector<StepShape> all;
  for (const TowerStep& step : steps) {
    StepShape& own = all.emplace_back(StepShape{.step = step, .rows = rows, .columns = columns});
    settle(own);
    rows = own.out_rows;
    columns = own.out_columns;
  }
  return all;
}

TowerTokens tokens_of(const TowerSpec& tower, std::int64_t size) {
  TowerTokens all;
  all.input = tower.input_tokens(size);
  const auto stem = shapes_of(tower.stem, all.input, tower.input_width());
  all.encoder = stem.empty() ? all.input : stem.back().out_rows;
  const auto projector = shapes_of(tower.projector, all.encoder, tower.encoder.hidden);
  all.language = projector.empty() ? all.encoder : projector.back().out_rows;
  return all;
}

double projector_parameters(const TowerSpec& tower) {
  const std::int64_t h = tower.encoder.hidden;
  return parameters_of(shapes_of(tower.projector, 1, h)) +
         static_cast<double>(tower.branches) * parameters_of(shapes_of(tower.branch, 1, h));
}

double tower_parameters(const TowerSpec& tower) {
  return parameters_of(shapes_of(tower.stem, 1, tower.input_width())) +
         static_cast<double>(tower.encoder.layers) * parameters_per_layer(tower.encoder) +
         projector_parameters(tower);
}

double unpriced_parameters(const TowerSpec& tower) {
  const ModelSpec& e = tower.encoder;
  return static_cast<double>(
      e.layers * (tower.layer_vectors * e.hidden - (tower.key_bias ? 0 : e.kv_heads * e.head_dim)));
}

}  // namespace costmodel
