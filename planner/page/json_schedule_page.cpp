#include "planner/page/json_schedule_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/page_style.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/page/timeline_picture.hpp"
#include "planner/report/html_table.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int most_ranks = 16;  // drawn of each

std::string remark(const Json& row) {
  for (const char* key : {"offered", "fits"}) note_shown(at(row, {key}));
  std::string text = at(row, {"offered"}) == Json(false) ? "not offered by the stack" : "";
  if (at(row, {"fits"}) == Json(false))
    text += std::string(text.empty() ? "" : ", ") + "<span class=\"bad\">does not fit</span>";
  return text;
}

std::string table_section(const Json& rows) {
  Table table{{left("schedule"), "v", "iteration", "pipeline", "bubble", left(""), "peak GiB",
               "in flight", left("")}};
  double most = 0;
  for (const Json& row : rows) {
    if (at(row, {"schedule"}) != Json("serial"))
      most = std::max(most, number_at(row, {"bubble_fraction"}));
  }
  for (const Json& row : rows) {
    if (at(row, {"refused"}).is_string()) continue;
    const double bubble = number_at(row, {"bubble_fraction"});
    table.rows.push_back(
        {html_text(words(at(row, {"schedule"}))), count_figure(at(row, {"vpp"})),
         seconds_figure(at(row, {"iteration_s"})), seconds_figure(at(row, {"pipeline_s"})),
         figure(at(row, {"bubble_fraction"}),
                [](double share) { return fmt::format("{:.2f} %", 100 * share); }),
         bubble > 0 && bubble <= most ? bar_svg({{"bubble", bubble, "bubble"}}, most, 0, "bubble")
                                      : "",
         gib_figure(at(row, {"peak_bytes"})),
         figure(at(row, {"in_flight_micro_batches"}),
                [](double count) { return fmt::format("{:.1f}", count); }),
         remark(row)});
  }
  return section("Side by side",
                 "<p class=\"note\">" + html_text(schedule_times_note()) +
                     " Bubble: of the slowest stage's work. Peak and micro-batches in flight: of "
                     "the fullest rank.</p>\n" +
                     table_of_html(table));
}

std::string refused_section(const Json& rows) {
  Json lines = Json::array();
  for (const Json& row : rows) {
    if (at(row, {"refused"}).is_string())
      lines.push_back(words(at(row, {"schedule"})) + ": " + words(at(row, {"refused"})));
  }
  return section("Not possible for this plan", sentences(lines));
}

// The longest but for `serial`, which has one micro-batch at a time and would make all others
// small.
Seconds scale_of(const std::vector<ComparedSchedule>& schedules) {
  Seconds longest, all;
  for (const ComparedSchedule& one : schedules) {
    all = max(all, one.timeline.end());
    if (one.plan.schedule != ScheduleKind::serial) longest = max(longest, one.timeline.end());
  }
  return longest > Seconds(0) ? longest : all;
}

std::string drawing_title(const ComparedSchedule& one, Seconds scale) {
  std::string text =
      fmt::format("{}: {}, bubble {:.2f} %", one.name, format_seconds(one.estimate.iteration),
                  100 * one.estimate.bubble_fraction);
  if (one.timeline.ranks > most_ranks) text += fmt::format(", the first {} ranks", most_ranks);
  if (one.timeline.end() > scale) text += ", cut off at the right";
  return text;
}

std::string drawings(const std::vector<ComparedSchedule>& schedules) {
  const Seconds scale = scale_of(schedules);
  std::vector<Timeline> drawn;
  std::string html;
  for (const ComparedSchedule& one : schedules) {
    if (one.timeline.events.empty()) continue;
    html += fmt::format("<h3>{}</h3>\n", html_text(drawing_title(one, scale))) +
            still_timeline_html(one.timeline, scale, most_ranks);
    drawn.push_back(one.timeline);
  }
  if (drawn.empty()) return "";
  return section(
      "On one scale of time",
      "<p class=\"note\">A row for each pipeline rank, neighbouring micro-batches in two shades, "
      "transfers in the strip below.</p>\n" +
          timelines_legend(drawn) + html + still_axis_html(scale));
}

std::string verdict(const std::vector<ComparedSchedule>& schedules) {
  const ComparedSchedule* best = nullptr;
  for (const ComparedSchedule& one : schedules) {
    const bool real = one.plan.schedule != ScheduleKind::ideal && one.refused.empty() &&
                      one.offered && one.estimate.fits();
    if (real && (best == nullptr || one.estimate.iteration < best->estimate.iteration)) best = &one;
  }
  if (best == nullptr) return "No schedule that the stack offers fits.";
  return fmt::format("Of what the stack offers and what fits, {} is the quickest: {}.", best->name,
                     format_seconds(best->estimate.iteration));
}

}  // namespace

std::string schedule_page(const std::string& json, const std::vector<ComparedSchedule>& schedules,
                          const Scenario& scenario, const ParallelPlan& plan) {
  const Json report = own_json(json);
  const ShownValues shown(report);
  const Json& rows = at(report, {"schedules"});
  const std::string about = heading(scenario, {});
  const std::string title = about.substr(0, about.find('\n'));
  std::string how = about.substr(std::min(about.size(), title.size() + 1));
  if (how.ends_with('\n')) how.pop_back();
  std::string html =
      fmt::format("<p class=\"verdict\">{}</p>\n<p class=\"lead\">{}<br>{}</p>\n",
                  html_text(verdict(schedules)), html_text(how), html_text(to_string(plan)));
  html += table_section(rows);
  html += drawings(schedules);
  html += refused_section(rows);
  html += section("Further figures", rest_html(report));
  return html_page(title, html, std::string(report_head()));
}

}  // namespace planner
