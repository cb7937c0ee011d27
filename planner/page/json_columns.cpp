#include "planner/page/json_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/escape.hpp"
#include "planner/page/json_evaluation.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

std::string differing(const Json& report, const Json& scenarios) {
  const Json& rows = at(report, {"differs"});
  if (!rows.is_array() || rows.empty()) return "";
  Table table{{left("key")}};
  for (const Json& scenario : scenarios)
    table.columns.push_back({words(at(scenario, {"name"})), false});
  for (const Json& row : rows) {
    auto& cells = table.rows.emplace_back(std::vector{html_text(words(at(row, {"key"})))});
    const Json& values = at(row, {"values"});
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
      const bool given = values.is_array() && i < values.size() && !values[i].is_null();
      cells.push_back(given ? html_text(words(values[i])) : "–");
    }
  }
  return section("What differs", table_of_html(table));
}

std::string reasons(const Json& report) {
  const Json& all = at(report, {"against_first"});
  if (!all.is_array() || all.empty()) return "";
  std::string html = "<ul>\n";
  for (const Json& one : all) {
    html += fmt::format("<li><b>{}</b>: {}</li>\n", html_text(words(at(one, {"name"}))),
                        html_text(words(at(one, {"why"}))));
  }
  return section("Against the first", html + "</ul>\n");
}

std::string times(const Json& scenarios) {
  double full = 0;
  bool hides = false;
  for (const Json& e : scenarios) full = std::max(full, number_at(e, {"time", "iteration_s"}));
  std::string html = "<div class=\"rows large\">\n";
  for (const Json& e : scenarios) {
    html += fmt::format("<span>{}</span>{}<span>{}</span>\n", html_text(words(at(e, {"name"}))),
                        time_bar(e, full), seconds_figure(at(e, {"time", "iteration_s"})));
    const std::string hidden = hidden_bar(e, full);
    hides |= !hidden.empty();
    if (!hidden.empty())
      html += fmt::format("<span></span><div class=\"beside\">{}</div><span></span>\n", hidden);
  }
  const std::string note =
      hides ? "<p class=\"note\">Hatched: communication that is hidden, and adds nothing.</p>\n"
            : "";
  return section("Where the time goes", note + html + "</div>\n" + time_legend());
}

std::string figures(const Json& report, const Json& scenarios) {
  Table table{{left(""), "iteration", "from", "to", "speedup", "faster", "tokens/s", "MFU", "GiB",
               "of", left(""), "chance"}};
  const Json& against = at(report, {"against_first"});
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Json &e = scenarios[i], &interval = at(e, {"time", "interval_s"});
    note_shown(at(e, {"memory", "fits"}));
    const bool known = interval.is_array() && interval.size() == 2;
    const bool told = i > 0 && against.is_array() && i <= against.size();
    const Json none, &other = told ? against[i - 1] : none;
    table.rows.push_back(
        {html_text(words(at(e, {"name"}))), seconds_figure(at(e, {"time", "iteration_s"})),
         seconds_figure(known ? interval[0] : none), seconds_figure(known ? interval[1] : none),
         figure(at(other, {"speedup"}), [](double x) { return fmt::format("{:.3f}", x); }),
         figure(at(other, {"probability_faster"}),
                [](double p) { return fmt::format("{:.0f} %", 100 * p); }),
         count_figure(at(e, {"throughput", "tokens_per_s"})),
         share_figure(at(e, {"throughput", "mfu"})), gib_figure(at(e, {"memory", "peak_bytes"})),
         gib_figure(at(e, {"memory", "capacity_bytes"})),
         at(e, {"memory", "fits"}) == Json(false) ? "<span class=\"bad\">does not fit</span>"
                                                  : "fits",
         share_figure(at(e, {"memory", "fits_probability"}))});
  }
  return section("Side by side",
                 "<p class=\"note\">From, to: the 90 % interval of each alone. Speedup: for the "
                 "same tokens, against the first. Faster: the chance of being really faster than "
                 "the first, where only the plans differ.</p>\n" +
                     table_of_html(table));
}

}  // namespace

std::string comparison_sections(const Json& report) {
  const Json& scenarios = at(report, {"scenarios"});
  if (!at(report, {"against_first"}).is_array() || !scenarios.is_array() || scenarios.empty())
    return "";
  std::string html = reasons(report) + figures(report, scenarios) + times(scenarios) +
                     differing(report, scenarios);
  for (const Json& e : scenarios) {
    html += folded(words(at(e, {"name"})), tiles_html(e) + plan_section(e) + run_section(e) +
                                               time_section(e) + memory_section(e) +
                                               traffic_section(e) +
                                               section("Notes", sentences(at(e, {"notes"}))));
  }
  return html;
}

}  // namespace planner
