#include "planner/page/json_tornado.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

// A number of the unit that the JSON says.
std::string quantity_figure(const Json& number, const std::string& unit) {
  if (unit == "s") return seconds_figure(number);
  if (unit == "B") return bytes_figure(number);
  if (unit == "B/s") {
    return figure(number, [](double rate) { return format_bandwidth(BytesPerSecond(rate)); });
  }
  return figure(number, [](double n) { return fmt::format("{:.4g}", n); });
}

double change_at(const Json& input, const char* key, double iteration) {
  return number_at(input, {key}) / iteration - 1;
}

std::string change_figure(const Json& input, const char* key, double iteration) {
  return figure(at(input, {key}), [&](double seconds) {
    return fmt::format("{:+.2f} %", 100 * (seconds / iteration - 1));
  });
}

// Where another plan becomes the best; "" where none does.
std::string break_even(const Json& input, const std::string& unit) {
  std::string html;
  for (const char* side : {"below", "above"}) {
    const Json& change = at(input, {side});
    if (!change.is_object()) continue;
    if (!html.empty()) html += "<br>";
    html += fmt::format("another {} {}{}", side, quantity_figure(at(change, {"value"}), unit),
                        at(change, {"inside"}) == Json(true) ? "" : ", beyond it");
  }
  return html.empty() ? "the same" : html;
}

// Those with less effect stand in a sentence.
bool has_row(const Json& input) {
  constexpr double shown = 5e-4;  // of the iteration
  return number_at(input, {"effect"}) >= shown || at(input, {"below"}).is_object() ||
         at(input, {"above"}).is_object();
}

}  // namespace

std::string sensitivity_section(const Json& report) {
  const Json& found = at(report, {"sensitivity"});
  const Json& inputs = at(found, {"inputs"});
  if (!inputs.is_array()) return "";
  const double iteration = number_at(found, {"iteration_s"});
  double full = 0;
  for (const Json& input : inputs) full = std::max(full, number_at(input, {"effect"}));
  const bool searched = at(found, {"searched"}) == Json(true);
  Table table{{left("input"), left(""), "at the first", "at the last", "value", "from", "to",
               "uncertainty", left("stated by")}};
  if (searched) table.columns.push_back({"best plan", false});
  for (const Json& input : inputs) {
    if (!has_row(input)) continue;
    const std::string unit = words(at(input, {"unit"}));
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        fmt::format("<span class=\"told\" title=\"{}\">{}</span>",
                    html_text(words(at(input, {"key"}))), html_text(words(at(input, {"name"})))),
        tornado_svg(change_at(input, "iteration_low_s", iteration),
                    change_at(input, "iteration_high_s", iteration), full, "change of the time"),
        change_figure(input, "iteration_low_s", iteration),
        change_figure(input, "iteration_high_s", iteration),
        quantity_figure(at(input, {"value"}), unit), quantity_figure(at(input, {"low"}), unit),
        quantity_figure(at(input, {"high"}), unit), share_figure(at(input, {"spread"})),
        html_text(words(at(input, {"from"})))});
    if (searched) row.push_back(break_even(input, unit));
  }
  const std::string note = fmt::format(
      "<p class=\"note\">Each input alone, moved by its own uncertainty, the plan kept. The bars: "
      "the iteration's change, at the first value (upper half) and the last; half of a bar's width "
      "is {:.1f} %.{}</p>\n",
      100 * full,
      searched
          ? " Best plan: of even stages, searched again with the input moved, and of the ranking."
          : "");
  return section("What the answer hangs on",
                 note + table_of_html(table) + sentences(at(found, {"sentences"})));
}

}  // namespace planner
