#include "planner/report/serving_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "costmodel/base/unit_text.hpp"
#include "planner/report/comparison.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

using ServedCell = std::function<std::string(const ServingEstimate&)>;
struct NamedCell {
  std::string name;
  ServedCell of;
  bool always = false;  // also where the plan does not fit
};

std::string plain_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::vector<NamedCell> plain_cells() {
  const auto known = [](double value) { return value > 0 ? plain_number(value) : std::string(); };
  constexpr double gib = 1 << 30;
  return {{"output_tokens_per_s", [](const auto& e) { return plain_number(e.output_per_s); }},
          {"per_device", [](const auto& e) { return plain_number(e.per_device()); }},
          {"requests_per_s", [](const auto& e) { return plain_number(e.requests_per_s); }},
          {"first_token_s", [](const auto& e) { return plain_number(e.ttft.mean); }},
          {"next_token_s", [](const auto& e) { return plain_number(e.tpot.mean); }},
          {"answer_s", [](const auto& e) { return plain_number(e.e2e.mean); }},
          {"running", [](const auto& e) { return plain_number(e.running); }},
          {"usd_per_m", [=](const auto& e) { return known(e.usd_per_million_output); }},
          {"weights_gib", [](const auto& e) { return plain_number(e.memory.weights.value / gib); },
           true},
          {"cache_tokens", [](const auto& e) { return plain_number(e.memory.tokens); }, true},
          {"saturated", [](const auto& e) { return std::string(e.saturated ? "true" : "false"); }},
          {"fits", [](const auto& e) { return std::string(e.fits ? "true" : "false"); }, true}};
}

std::string rate(double per_s) {
  return per_s < 100 ? fmt::format("{:.3g}", per_s) : format_integer(std::llround(per_s));
}

std::vector<NamedCell> people_cells() {
  return {{"output tokens/s", [](const auto& e) { return rate(e.output_per_s); }},
          {"a device", [](const auto& e) { return rate(e.per_device()); }},
          {"requests/s", [](const auto& e) { return rate(e.requests_per_s); }},
          {"first token", [](const auto& e) { return latency_text(e.ttft.mean); }},
          {"next tokens", [](const auto& e) { return format_seconds(Seconds(e.tpot.mean)); }},
          {"answer", [](const auto& e) { return latency_text(e.e2e.mean); }},
          {"requests running", [](const auto& e) { return fmt::format("{:.1f}", e.running); }},
          {"dollars a million",
           [](const auto& e) {
             const double usd = e.usd_per_million_output;
             return usd > 0 ? fmt::format("{:.3g}", usd) : std::string("-");
           }},
          {"weights", [](const auto& e) { return format_bytes(e.memory.weights); }, true},
          {"tokens of cache", [](const auto& e) { return rate(e.memory.tokens); }, true},
          {"keeps up", [](const auto& e) { return std::string(e.saturated ? "NO" : "yes"); }},
          {"fits", [](const auto& e) { return std::string(e.fits ? "yes" : "NO"); }, true}};
}

void add_row(Table& table, const std::vector<ServedColumn>& columns, const NamedCell& cell,
             const char* unknown) {
  std::vector<std::string> row{cell.name};
  for (const ServedColumn& c : columns)
    row.push_back(cell.always || c.estimate.fits ? cell.of(c.estimate) : unknown);
  table.rows.push_back(std::move(row));
}

// A part of a token's time, by its place in token_parts().
NamedCell part_cell(const NamedPart& part, std::size_t at, bool for_people) {
  return {part.name, [=](const ServingEstimate& e) {
            const Seconds time = token_parts(e)[at].time;
            return for_people ? format_seconds(time) : plain_number(time.value);
          }};
}

Table parts_table(const std::vector<ServedColumn>& columns) {
  Table table = titled("", columns, true);
  const auto parts = token_parts(columns.front().estimate);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool any = std::ranges::any_of(columns, [i](const ServedColumn& c) {
      return c.estimate.fits && token_parts(c.estimate)[i].time.value > 0;
    });
    if (any) add_row(table, columns, part_cell(parts[i], i, true), "-");
  }
  return table;
}

// "+2.1 ms collectives, -1.2 ms weights read": the parts that change most.
std::string changes(const ServingEstimate& first, const ServingEstimate& other) {
  auto parts = token_parts(other);
  const auto before = token_parts(first);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].time -= before[i].time;
  std::ranges::stable_sort(parts, [](const NamedPart& a, const NamedPart& b) {
    return std::abs(a.time.value) > std::abs(b.time.value);
  });
  std::string text;
  for (const NamedPart& part : std::span(parts).first(3)) {
    if (part.time.value == 0) continue;
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", part.time.value > 0 ? "+" : "-",
                        format_seconds(Seconds(std::abs(part.time.value))), part.name);
  }
  return text.empty() ? "its parts are the same" : text;
}

std::string against(const ServedColumn& first, const ServedColumn& other) {
  const ServingEstimate &a = first.estimate, &b = other.estimate;
  if (!a.fits || !b.fits) {
    return fmt::format("{} does not fit: its weights take {} of {}.",
                       a.fits ? other.name : first.name,
                       format_bytes((a.fits ? b : a).memory.weights),
                       format_bytes((a.fits ? b : a).memory.device));
  }
  return fmt::format(
      "{} answers {:.2f} times the tokens a second of {} ({:.2f} times a device): of a token's "
      "time {}.",
      other.name, b.output_per_s / a.output_per_s, first.name, b.per_device() / a.per_device(),
      changes(a, b));
}

}  // namespace

std::vector<std::string> served_titles() {
  std::vector<std::string> titles;
  for (const NamedCell& cell : plain_cells()) titles.push_back(cell.name);
  return titles;
}

std::vector<std::string> served_cells(const ServingEstimate& e) {
  std::vector<std::string> cells;
  for (const NamedCell& cell : plain_cells())
    cells.push_back(cell.always || e.fits ? cell.of(e) : std::string());
  return cells;
}

Table serving_comparison_rows(const std::vector<ServedColumn>& columns) {
  Table table = titled("quantity", columns, false);
  add_differences(table, differences(columns), "");
  for (const NamedCell& cell : plain_cells()) add_row(table, columns, cell, "");
  const auto parts = token_parts(columns.front().estimate);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    NamedCell cell = part_cell(parts[i], i, false);
    cell.name += " (s)";
    add_row(table, columns, cell, "");
  }
  return table;
}

std::string serving_comparison(const std::vector<ServedColumn>& columns, const ReportStyle& style) {
  std::string text;
  for (const ServedColumn& column : columns) {
    text +=
        section_title(escaped(column.name, style), style) + serving_heading(column.scenario, style);
  }
  Table inputs = titled("", columns, false);
  add_differences(inputs, differences(columns), "-");
  text += section_title("What differs", style);
  text += inputs.rows.empty() ? bullet("Nothing: the inputs are the same.", style)
                              : section_table(inputs, style);
  text += table_section("Where a token's time goes", parts_table(columns), style);
  Table results = titled("", columns, true);
  for (const NamedCell& cell : people_cells()) add_row(results, columns, cell, "-");
  text += table_section("What comes of it", results, style);
  text += section_title("Why", style);
  for (std::size_t i = 1; i < columns.size(); ++i)
    text += bullet(against(columns[0], columns[i]), style);
  return text.substr(text.find_first_not_of('\n'));
}

}  // namespace planner
