#include "planner/page/json_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "planner/page/json_columns.hpp"
#include "planner/page/json_evaluation.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_machines.hpp"
#include "planner/page/json_points.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_search.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/json_tornado.hpp"
#include "planner/page/memory_picture.hpp"
#include "planner/page/page_style.hpp"
#include "planner/page/timeline_picture.hpp"
#include "planner/report/html_table.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

namespace {

using namespace costmodel;

std::string sources(const Scenario& s) {
  std::string html = "<dl class=\"facts\">\n";
  const auto add = [&html](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, html_text(value));
  };
  add("scenario", s.name);
  add("model", s.model_text);
  add("cluster", s.cluster_text);
  add("stack", s.training.stack.name);
  html +=
      "</dl>\n<p class=\"note\">Every constant of a device, cluster and stack stands in its "
      "file under configs/, with where it was published or measured; <code>shardplan "
      "explain</code> "
      "has the formulas with their sources.</p>\n";
  return html;
}

std::string lead_of(const std::string& verdict, const std::string& how) {
  std::string html;
  if (!verdict.empty()) html += "<p class=\"verdict\">" + verdict + "</p>\n";
  return html + "<p class=\"lead\">" + html_text(how) + "</p>\n";
}

}  // namespace

std::string page_html(const std::string& json, const Scenario& scenario, const Pictures& pictures) {
  const Json report = own_json(json);
  const ShownValues shown(report);
  const Json& plans = at(report, {"plans"});
  const Json& best = plans.is_array() && !plans.empty() ? plans.front() : report;
  for (const Json* named : {&report, &best}) note_shown(at(*named, {"scenario"}));  // by sources()
  const std::string about = heading(scenario, {});
  const std::string title = about.substr(0, about.find('\n'));
  std::string how = about.substr(std::min(about.size(), title.size() + 1));
  if (how.ends_with('\n')) how.pop_back();
  std::string html =
      lead_of(verdict_html(best) + (report.is_object() ? proof_html(report) : std::string()), how);
  html += ladder_section(report) + tiles_html(best) + failure_sections(report) +
          plan_section(best) + run_section(best) + time_section(best) +
          section("The schedule", timeline_html(pictures.timeline)) + memory_section(best) +
          section("Memory over the iteration",
                  memory_html(pictures.memory, scenario.cluster.device.memory)) +
          reasons_section(report) + steps_section(report) + plans_section(report) +
          front_section(report) + device_front_section(report) + sensitivity_section(report) +
          upgrades_section(report) + traffic_section(best) + search_section(report);
  const std::string notes = sentences(at(best, {"notes"}));
  if (&best != &report) html += section("Further figures of the plan", rest_html(best));
  html += section(report.is_object() ? "Further figures" : "Report", rest_html(report));
  html += section("Assumptions and sources", notes + sources(scenario));
  return html_page(title, html, std::string(report_head()));
}

std::string page_html(const std::string& json, const std::string& title,
                      const std::vector<std::string>& notes) {
  const Json report = own_json(json);
  const ShownValues shown(report);
  std::string html = lead_of(points_verdict(report), "");
  const std::string sections = points_section(report) + comparison_sections(report);
  html += sections + section(sections.empty() ? "Report" : "Further figures", rest_html(report));
  html += section("Notes", sentences(notes));
  return html_page(title, html,  // tables of many columns
                   std::string(report_head()) + "<style>main{max-width:1360px}</style>\n");
}

std::string figures_section(const std::string& json, const std::string& without) {
  const Json report = own_json(json);
  const ShownValues shown(report);
  note_shown(at(report, {without.c_str()}));
  return section("All figures", folded("As in the JSON", rest_html(report)));
}

}  // namespace planner
