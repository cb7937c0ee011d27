#include "planner/report/sensitivity_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "costmodel/plan/plan_text.hpp"
#include "planner/report/report_tables.hpp"

namespace planner {

using namespace costmodel;

std::string input_text(double value, Dimension unit) {
  switch (unit) {
    case Dimension::time: return format_seconds(Seconds(value));
    case Dimension::size: return format_bytes(Bytes(value));
    case Dimension::bandwidth: return format_bandwidth(BytesPerSecond(value));
    case Dimension::rate: return format_rate(FlopsPerSecond(value));
    case Dimension::count: return fmt::format("{:.4g}", value);
  }
  return "";
}

namespace {

// "above 33 GB/s: t 8 · p 12 ..., then 1.3 % faster".
std::string change_text(const InputEffect& e, const PlanChange& change, bool up) {
  std::string text =
      fmt::format("{} {}{}", up ? "above" : "below", input_text(change.value, e.input.unit),
                  change.inside ? "" : ", beyond its uncertainty,");
  if (!change.best) return text + " none fits";
  text += fmt::format(" {}", to_string(change.best->plan));
  if (!change.fits) return text + ", for this one no longer fits";
  const double faster = change.loss / (1 + change.loss);
  constexpr double shown = 5e-4;
  if (faster < shown) return text + ", less than 0.1 % faster";
  return text + fmt::format(", up to {} faster", percent(faster));
}

// Those with less effect stand in a sentence.
bool is_shown(const InputEffect& e) {
  constexpr double shown = 5e-4;  // of the iteration: less is 0.0 %
  return e.effect >= shown || e.below || e.above;
}

std::string source_text(const PricedInput& input) {
  return fmt::format("{:.0f} %, {}", 100 * input.spread, input.from);
}

std::string holds(const InputEffect& e) {
  const bool inside = (e.below && e.below->inside) || (e.above && e.above->inside);
  if (inside) return "changes";
  return e.below || e.above ? "changes beyond" : "same";
}

}  // namespace

Table sensitivity_table(const Sensitivity& found) {
  Table table{{left("input"), right("value", 2), right("from", 2), right("to", 2),
               left("iteration at these"), right("change", 0), right("", 0), left("uncertainty")}};
  if (found.searched) table.columns.push_back({"best plan", false, 0});
  for (const InputEffect& e : found.inputs) {
    if (!is_shown(e)) continue;
    const auto shown = [&](double value) { return input_text(value, e.input.unit); };
    const auto change = [&](Seconds t) { return signed_percent(t / found.plan.iteration); };
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        e.input.name, shown(e.input.value), shown(e.input.low), shown(e.input.high),
        fmt::format("{} .. {}", format_seconds(e.at_low), format_seconds(e.at_high)),
        change(e.at_low), change(e.at_high), source_text(e.input)});
    if (found.searched) row.push_back(holds(e));
  }
  return table;
}

std::vector<std::string> sensitivity_sentences(const Sensitivity& found) {
  std::vector<std::string> all;
  if (found.inputs.empty()) {
    all.emplace_back("No input changes anything.");
    return all;
  }
  const InputEffect& first = found.inputs.front();
  all.push_back(fmt::format(
      "Most on the {}: within its uncertainty the iteration takes {} less to {} more.",
      first.input.name,
      percent(std::max(0.0, 1 - min(first.at_low, first.at_high) / found.plan.iteration)),
      percent(std::max(0.0, max(first.at_low, first.at_high) / found.plan.iteration - 1))));
  for (const InputEffect& e : found.inputs) {
    if (e.below) {
      all.push_back(fmt::format("Another plan is best with the {} {}.", e.input.name,
                                change_text(e, *e.below, false)));
    }
    if (e.above) {
      all.push_back(fmt::format("Another plan is best with the {} {}.", e.input.name,
                                change_text(e, *e.above, true)));
    }
  }
  std::vector<std::string> small;
  for (const InputEffect& e : found.inputs)
    if (!is_shown(e)) small.push_back(e.input.name);
  if (!small.empty()) all.push_back(fmt::format("Less than 0.05 %: {}.", fmt::join(small, ", ")));
  if (!found.unmoved.empty())
    all.push_back(fmt::format("Without any effect here: {}.", fmt::join(found.unmoved, ", ")));
  if (found.interrupted)
    all.emplace_back("Stopped early: where the best plan changes is known in part.");
  return all;
}

std::string sensitivity_report(const Sensitivity& found, const ReportStyle& style) {
  const char* what =
      found.searched ? "What the answer hangs on (each input alone, by its own uncertainty, the "
                       "plan kept; best plan: of even stages, searched again, and of the ranking)"
                     : "What the answer hangs on (each input alone, by its own uncertainty, "
                       "the plan kept)";
  std::string text = section_title(what, style);
  if (!found.inputs.empty()) text += section_table(sensitivity_table(found), style);
  text += bullets(sensitivity_sentences(found), style);
  return text;
}

}  // namespace planner
