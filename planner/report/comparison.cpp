#include "planner/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

// What is not an input of the prediction.
bool is_remark(const std::string& key) {
  return key == "title" || key == "source" || key == "notes" || key == "command" ||
         key == "measured" || key == "reported";
}

std::string text_of(const Value& value) {
  if (value.kind == Value::Kind::null) return "null";
  if (value.is_scalar()) return value.text;
  std::string text;
  for (const Value& item : value.items) text += (text.empty() ? "" : ", ") + text_of(item);
  for (const auto& entry : value.entries)
    text += (text.empty() ? "" : ", ") + entry.key + ": " + text_of(entry.value);
  return value.is_map() ? "{" + text + "}" : "[" + text + "]";
}

// Puts the leaves of `value` into column `column` of `rows`, which keep the order of first sight.
void collect(const Value& value, const std::string& key, std::size_t column, std::size_t columns,
             std::vector<Difference>& rows) {
  if (value.is_map() && !value.entries.empty()) {
    for (const auto& entry : value.entries) {
      if (key.empty() && is_remark(entry.key)) continue;
      collect(entry.value, key.empty() ? entry.key : key + "." + entry.key, column, columns, rows);
    }
    return;
  }
  auto at = std::ranges::find(rows, key, &Difference::key);
  if (at == rows.end()) at = rows.insert(rows.end(), {key, std::vector<std::string>(columns)});
  at->values[column] = text_of(value);
}

std::string seconds_change(Seconds change) {
  if (change.value == 0) return "";
  return fmt::format("{}{}", change.value > 0 ? "+" : "-",
                     format_seconds(Seconds(std::abs(change.value))));
}

bool has_samples(const Compared& c) { return c.scenario.training.packing.any(); }

// Without what only fills a sequence up.
double tokens_per_s(const Compared& c) {
  return c.estimate.tokens_per_s * c.scenario.training.packing.filled;
}

// The estimate of `other`, for the tokens of `first`.
Estimate for_tokens(const Compared& other, const Compared& first) {
  Estimate e = other.estimate;
  const double tokens = tokens_per_s(other) * e.iteration.value,
               wanted = tokens_per_s(first) * first.estimate.iteration.value;
  constexpr double rounding = 1e-9;
  if (std::abs(wanted / tokens - 1) < rounding) return e;
  e.breakdown *= wanted / tokens;
  e.iteration.value *= wanted / tokens;
  return e;
}

std::string fit_word(const Compared& c) {
  const char* word = "";
  switch (fit_of(c.estimate, c.scenario.search.memory_margin)) {
    case MemoryFit::fits: word = "yes"; break;
    case MemoryFit::tightly: word = "tightly"; break;
    case MemoryFit::exceeds: word = "NO"; break;
  }
  return fmt::format("{}, {}", word, fits_chance(c.estimate, c.scenario));
}

std::string probability_cell(const Compared& c) {
  return fmt::format("{:.4f}", fits_probability(c.estimate.peak, c.estimate.capacity,
                                                c.scenario.training.peak_errors));
}

using Cell = std::function<std::string(const Estimate&)>;

void add_row(Table& table, const std::string& name, const std::vector<Compared>& columns,
             const Cell& cell) {
  std::vector<std::string> row{name};
  for (const Compared& column : columns) row.push_back(cell(column.estimate));
  if (table.columns.size() > row.size()) row.emplace_back();
  table.rows.push_back(std::move(row));
}

// The parts of which any column has some. Of two columns, a third has the change.
Table parts_table(const std::vector<Compared>& columns) {
  Table table = titled("", columns, true);
  const bool two = columns.size() == 2;
  if (two) table.columns.push_back({"change"});
  const auto add = [&](const std::string& name, auto time) {
    add_row(table, name, columns, [&](const auto& e) { return format_seconds(time(e)); });
    if (two) {
      table.rows.back().back() =
          seconds_change(time(columns[1].estimate) - time(columns[0].estimate));
    }
  };
  const auto names = all_shares(columns.front().estimate);
  for (std::size_t part = 0; part < names.size(); ++part) {
    const auto time = [part](const Estimate& e) { return all_shares(e)[part].time; };
    if (std::ranges::any_of(columns,
                            [&](const Compared& c) { return time(c.estimate).value != 0; }))
      add(names[part].name, time);
  }
  add("iteration", [](const Estimate& e) { return e.iteration; });
  return table;
}

Table result_table(const std::vector<Compared>& columns) {
  Table table = titled("", columns, true);
  add_row(table, "90 % interval", columns, [](const auto& e) {
    return fmt::format("{} to {}", format_seconds(e.interval.low), format_seconds(e.interval.high));
  });
  add_row(table, "tokens/s", columns,
          [](const auto& e) { return format_integer(std::llround(e.tokens_per_s)); });
  if (std::ranges::any_of(columns, has_samples)) {
    std::vector<std::string> samples{"samples' tokens/s"};
    for (const Compared& c : columns)
      samples.push_back(format_integer(std::llround(tokens_per_s(c))));
    table.rows.push_back(std::move(samples));
  }
  std::vector<std::string> each{"tokens/s a device"};
  for (const Compared& c : columns) {
    const auto devices = static_cast<double>(c.scenario.cluster.devices);
    each.push_back(fmt::format("{:.5g}", c.estimate.tokens_per_s / devices));
  }
  table.rows.push_back(std::move(each));
  add_row(table, "MFU", columns,
          [](const auto& e) { return fmt::format("{:.1f} %", 100 * e.mfu); });
  return table;
}

Table memory_table(const std::vector<Compared>& columns) {
  Table table = titled("", columns, true);
  using costmodel::StageMemory;
  const auto add = [&](const char* name, Bytes StageMemory::*part) {
    add_row(table, name, columns,
            [part](const auto& e) { return format_bytes(e.memory[e.fullest].*part); });
  };
  add("weights", &StageMemory::weights);
  add("gradients", &StageMemory::gradients);
  add("optimizer", &StageMemory::optimizer);
  add("activations", &StageMemory::activations);
  add("buffers", &StageMemory::buffers);
  add_row(table, "in all", columns, [](const auto& e) { return format_bytes(e.peak); });
  add_row(table, "of", columns, [](const auto& e) { return format_bytes(e.capacity); });
  std::vector<std::string> fits{"fits"};
  for (const Compared& c : columns) fits.push_back(fit_word(c));
  table.rows.push_back(std::move(fits));
  return table;
}

}  // namespace

void add_differences(Table& table, const std::vector<Difference>& differing, const char* absent) {
  for (const Difference& difference : differing) {
    std::vector<std::string> row{difference.key};
    for (const auto& value : difference.values) row.push_back(value.empty() ? absent : value);
    table.rows.push_back(std::move(row));
  }
}

std::vector<Difference> differences(const std::vector<const Value*>& inputs) {
  std::vector<Difference> rows;
  for (std::size_t column = 0; column < inputs.size(); ++column)
    collect(*inputs[column], "", column, inputs.size(), rows);
  std::erase_if(rows, [](const Difference& row) {
    return std::ranges::all_of(row.values,
                               [&](const std::string& v) { return v == row.values.front(); });
  });
  return rows;
}

bool only_plans_differ(const std::vector<Difference>& differing) {
  return std::ranges::all_of(differing,
                             [](const Difference& row) { return row.key.starts_with("plan."); });
}

Against against(const Compared& first, const Compared& other, bool only_plans_differ) {
  const Estimate scaled = for_tokens(other, first);
  const Estimate& base = first.estimate;
  Against result;
  result.same_tokens = scaled.iteration;
  result.speedup = base.iteration / scaled.iteration;
  const bool as_many = scaled.iteration == other.estimate.iteration;
  const bool faster = result.speedup > 1;
  const double ratio = faster ? result.speedup : 1 / result.speedup;
  constexpr double tie = 1.0005;
  if (ratio < tie) {
    result.sentence = fmt::format("{} is as fast as {}", other.name, first.name);
  } else {
    result.sentence = fmt::format("{} is {:.{}f} times as {} as {}", other.name, ratio,
                                  ratio < 1.01 ? 4 : 2, faster ? "fast" : "slow", first.name);
  }
  if (!as_many) {
    result.sentence += " for the same tokens";
    if (has_samples(first) || has_samples(other)) result.sentence += " of samples";
  }
  result.sentence += fmt::format(" ({} and {}): {}.", format_seconds(scaled.iteration),
                                 format_seconds(base.iteration), difference(base, scaled));
  if (only_plans_differ) {
    result.probability_faster =
        costmodel::probability_faster(scaled.iteration.value, base.iteration.value,
                                      first.scenario.training.error_band.pair_spread);
    result.sentence += fmt::format(
        " By the errors of published runs it is really faster with a chance of {:.0f} %.",
        100 * result.probability_faster);
  }
  if (base.fits() != other.estimate.fits()) {
    result.sentence += fmt::format(" But {} does not fit.", base.fits() ? other.name : first.name);
  }
  return result;
}

Table comparison_rows(const std::vector<Compared>& columns) {
  Table table = titled("quantity", columns, true);
  add_differences(table, differences(columns), "");
  const auto number = [&](const std::string& name, auto value) {
    add_row(table, name, columns, [&](const auto& e) { return fmt::format("{:.6g}", value(e)); });
  };
  constexpr double gib = 1 << 30;
  using E = Estimate;
  number("iteration_s", [](const E& e) { return e.iteration.value; });
  number("low_s", [](const E& e) { return e.interval.low.value; });
  number("high_s", [](const E& e) { return e.interval.high.value; });
  const auto names = all_shares(columns.front().estimate);
  for (std::size_t part = 0; part < names.size(); ++part) {
    number(names[part].name + " (s)",
           [part](const E& e) { return all_shares(e)[part].time.value; });
  }
  number("tokens_per_s", [](const E& e) { return e.tokens_per_s; });
  if (std::ranges::any_of(columns, has_samples)) {
    table.rows.push_back({"sample_tokens_per_s"});
    for (const Compared& c : columns)
      table.rows.back().push_back(fmt::format("{:.6g}", tokens_per_s(c)));
  }
  number("mfu", [](const E& e) { return e.mfu; });
  number("peak_gib", [&](const E& e) { return e.peak.value / gib; });
  number("capacity_gib", [&](const E& e) { return e.capacity.value / gib; });
  add_row(table, "fits", columns, [](const E& e) { return e.fits() ? "true" : "false"; });
  table.rows.push_back({"fits_probability"});
  for (const Compared& c : columns) table.rows.back().push_back(probability_cell(c));
  return table;
}

std::string comparison_report(const std::vector<Compared>& columns, const ReportStyle& style) {
  const auto differing = differences(columns);
  std::string text;
  const auto head = [&](const Compared& column) { return heading(column.scenario, style); };
  if (std::ranges::all_of(columns,
                          [&](const Compared& c) { return head(c) == head(columns[0]); })) {
    text += head(columns[0]);
  } else {
    for (const Compared& column : columns)
      text += section_title(escaped(column.name, style), style) + head(column);
  }
  Table inputs = titled("", columns, false);
  add_differences(inputs, differing, "-");
  text += section_title("What differs", style);
  text += differing.empty() ? bullet("Nothing: the inputs are the same.", style)
                            : section_table(inputs, style);
  text += table_section("Where the time of an iteration goes", parts_table(columns), style);
  text += table_section("What comes of it", result_table(columns), style);
  text += table_section("Memory on a device of the fullest stage", memory_table(columns), style);
  text += section_title("Why", style);
  for (std::size_t i = 1; i < columns.size(); ++i) {
    text += bullet(against(columns[0], columns[i], only_plans_differ(differing)).sentence, style);
  }
  return text.substr(text.find_first_not_of('\n'));
}

}  // namespace planner
