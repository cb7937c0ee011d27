#include "planner/page/json_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

using namespace costmodel;

// "+1.2 %" of the best; "" for the best itself.
std::string against(const Json& seconds, double best) {
  if (!seconds.is_number() || !(best > 0)) return "";
  const double ratio = seconds.get<double>() / best;
  return ratio == 1 ? "" : fmt::format("{:+.1f} %", 100 * (ratio - 1));
}

std::string difference_in(const std::string& key, const Json& value) {
  constexpr std::size_t longest = 40;
  if (key == "stages") return "stages of own sizes";
  if (key == "replicas") return "replicas of own sizes";
  if (value.is_array() && value.empty()) return key + " even";
  if (value.is_boolean()) return key + (value.get<bool>() ? " on" : " off");
  const std::string told = value.is_null() ? "by stage" : words(value);
  return key + " " + (told.size() > longest ? "by stage" : told);
}

// The plan's keys in which it differs from `best`: "pp 16, dp 12, recompute full".
std::string differences(const Json& plan, const Json& best) {
  std::vector<std::string> all;
  if (!plan.is_object()) return "";
  for (const auto& [key, value] : plan.items()) {
    if (key == "micro_batches" || key == "devices" || at(best, {key.c_str()}) == value) continue;
    all.push_back(difference_in(key, value));
  }
  return html_text(fmt::format("{}", fmt::join(all, ", ")));
}

// What the difference costs, in a line of its own.
std::string costs(const Json& plan) {
  const Json& told = at(plan, {"against_best"});
  return told.is_string() ? "<br><span class=\"note\">" + html_text(words(told)) + "</span>" : "";
}

const Json& best_plan(const Json& report) {
  static const Json none;
  const Json& plans = at(report, {"plans"});
  return plans.is_array() && !plans.empty() ? plans.front() : none;
}

std::string chance(const Json& probability) {
  return figure(probability, [](double p) {
    return p < 0.01 ? std::string("< 1 %") : fmt::format("{:.0f} %", 100 * p);
  });
}

}  // namespace

std::string proof_html(const Json& report) {
  if (!report.contains("plans")) return "";
  std::string html;
  if (best_plan(report).is_null()) {
    html = report.contains("obstacles") ? "<b class=\"bad\">No plan fits.</b>"
                                        : "<b class=\"bad\">There is no plan.</b>";
  }
  const Json& certificate = at(report, {"certificate"});
  if (certificate.is_object()) {
    const double gap = number_at(certificate, {"gap_pct"});
    html +=
        fmt::format(" Proved: under this cost model no plan that is searched takes less than {}",
                    seconds_figure(at(certificate, {"lower_bound_s"})));
    constexpr double shown = 0.005;
    html += gap < shown ? "."
                        : fmt::format("; this one is within {}.",
                                      figure(certificate["gap_pct"], [](double pct) {
                                        return fmt::format("{:.2f} %", pct);
                                      }));
  }
  for (const char* key : {"cause", "reason"})
    if (report.contains(key)) html += " " + html_text(words(report[key])) + ".";
  return html;
}

std::string failure_sections(const Json& report) {
  return section("What stands in the way", sentences(at(report, {"obstacles"}))) +
         section("What would help", sentences(at(report, {"remedies"})));
}

std::string reasons_section(const Json& report) {
  std::string html = sentences(at(report, {"reasons"}));
  for (const char* other : {"fastest", "measured"}) {
    const Json& sentence = at(report, {other, "sentence"});
    if (sentence.is_string()) html += "<p>" + html_text(words(sentence)) + "</p>\n";
  }
  for (const Json& unasked : at(report, {"unasked"})) {
    const Json& sentence = at(unasked, {"sentence"});
    if (sentence.is_string()) html += "<p>" + html_text(words(sentence)) + "</p>\n";
  }
  return section("Why this plan", html);
}

std::string steps_section(const Json& report) {
  const Json& steps = at(report, {"one_step_away"});
  if (!steps.is_array() || steps.empty()) return "";
  const double best = number_at(best_plan(report), {"time", "iteration_s"}),
               capacity = number_at(best_plan(report), {"memory", "capacity_bytes"});
  Table table{{left("knob"), left("change"), "iteration", "vs best", "GiB", left("")}};
  for (const Json& step : steps) {
    const bool fits = at(step, {"fits"}) != Json(false);
    note_shown(at(step, {"fits"}));
    const bool inside = number_at(step, {"peak_bytes"}) <= capacity;
    table.rows.push_back(
        {html_text(words(at(step, {"knob"}))), html_text(words(at(step, {"change"}))),
         seconds_figure(at(step, {"iteration_s"})), against(at(step, {"iteration_s"}), best),
         gib_figure(at(step, {"peak_bytes"})),
         fits     ? "fits"
         : inside ? "<span class=\"bad\">leaves too little free</span>"
                  : "<span class=\"bad\">does not fit</span>"});
  }
  return section("What one step of each knob costs", table_of_html(table));
}

namespace {

// The other members of a plan's family, after its row: "2.2", "2.3".
void add_members(const Json& plan, std::size_t rank, double best, bool chances, const Json& first,
                 Table& table) {
  const Json& members = at(plan, {"members"});
  for (std::size_t k = 0; members.is_array() && k < members.size(); ++k) {
    const Json &member = members[k], &seconds = at(member, {"iteration_s"}),
               &interval = at(member, {"interval_s"});
    std::vector<std::string> row{fmt::format("{}.{}", rank, k + 2), seconds_figure(seconds),
                                 against(seconds, best)};
    if (chances) row.emplace_back();
    row.insert(row.end(),
               {seconds_figure(interval[0]), seconds_figure(interval[1]), "",
                gib_figure(at(member, {"peak_bytes"})), differences(at(member, {"plan"}), first)});
    table.rows.push_back(std::move(row));
  }
}

bool has_members(const Json& plans) {
  return std::ranges::any_of(
      plans, [](const Json& plan) { return plan.contains("members") && !plan["members"].empty(); });
}

}  // namespace

std::string plans_section(const Json& report) {
  const Json& plans = at(report, {"plans"});
  if (!plans.is_array() || plans.empty() || (plans.size() < 2 && !has_members(plans))) return "";
  const double best = number_at(plans.front(), {"time", "iteration_s"});
  const bool chances = plans.front().contains("probability_faster_than_best");
  double full = 0;
  for (const Json& plan : plans) {
    const Json& interval = at(plan, {"time", "interval_s"});
    if (interval.is_array()) full = std::max(full, interval.back().get<double>());
  }
  Table table{{"#", "iteration", "vs best"}};
  if (chances) table.columns.push_back({"beats 1"});
  for (const char* title : {"from", "to"}) table.columns.push_back({title});
  table.columns.push_back({"", false});
  table.columns.push_back({"GiB"});
  table.columns.push_back({"differs from 1 in", false});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json &plan = plans[i], &interval = at(plan, {"time", "interval_s"});
    const bool known = interval.is_array() && interval.size() == 2;
    const Json none, &low = known ? interval[0] : none, &high = known ? interval[1] : none;
    const double time = number_at(plan, {"time", "iteration_s"});
    std::vector<std::string> row{fmt::format("{}", i + 1),
                                 seconds_figure(at(plan, {"time", "iteration_s"})),
                                 against(at(plan, {"time", "iteration_s"}), best)};
    if (chances) row.push_back(i == 0 ? "" : chance(at(plan, {"probability_faster_than_best"})));
    row.insert(
        row.end(),
        {seconds_figure(low), seconds_figure(high),
         known ? range_svg({low.get<double>(), time, high.get<double>()}, full, "interval") : "",
         gib_figure(at(plan, {"memory", "peak_bytes"})),
         i == 0 ? "the plan above"
                : differences(at(plan, {"plan"}), at(plans.front(), {"plan"})) + costs(plan)});
    table.rows.push_back(std::move(row));
    add_members(plan, i + 1, best, chances, at(plans.front(), {"plan"}), table);
  }
  std::string note = "<p class=\"note\">From, to: the 90 % interval of each plan alone.";
  note += chances ? " Errors of two plans of one scenario are largely shared: beats 1 is the "
                    "chance, by errors of published runs, of being really faster than the first."
                  : " Errors of two plans of one scenario are largely shared, so plans whose "
                    "intervals overlap can still differ.";
  return section("Runners-up", note + "</p>\n" + table_of_html(table));
}

std::string front_section(const Json& report) {
  const Json& front = at(report, {"front"});
  if (!front.is_array() || front.empty()) return "";
  const double best = number_at(front.front(), {"iteration_s"});
  double full = 0;
  for (const Json& entry : front) full = std::max(full, number_at(entry, {"iteration_s"}));
  Table table{{"iteration", "vs first", left(""), "GiB", "free", "devices",
               left("differs from the first in")}};
  for (const Json& entry : front) {
    const Json& seconds = at(entry, {"iteration_s"});
    table.rows.push_back(
        {seconds_figure(seconds), against(seconds, best),
         bar_svg({{"compute", number_at(entry, {"iteration_s"}), "time"}}, full, 0, "time"),
         gib_figure(at(entry, {"peak_bytes"})), gib_figure(at(entry, {"headroom_bytes"})),
         count_figure(at(entry, {"plan", "devices"})),
         differences(at(entry, {"plan"}), at(front.front(), {"plan"}))});
  }
  return section("Less memory: each the best of the plans that need no more", table_of_html(table));
}

std::string search_section(const Json& report) {
  const Json& searched = at(report, {"searched"});
  if (!searched.is_object()) return "";
  note_shown(at(searched, {"seconds"}));  // not shown: the page is the same on any machine
  return section("What was searched", rest_html(searched) +
                                          sentences(at(report, {"strategies", "notes"})) +
                                          sentences(at(report, {"notes"})));
}

}  // namespace planner
