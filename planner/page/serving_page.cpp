#include "planner/page/serving_page.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/diagnosis/serving_remedies.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/page_style.hpp"
#include "planner/page/svg_chart.hpp"
#include "planner/report/html_table.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/serving_interval.hpp"
#include "planner/report/serving_notes.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string sentences(const std::vector<std::string>& lines) {
  std::string html = "<ul>\n";
  for (const std::string& line : lines) html += fmt::format("<li>{}</li>\n", html_text(line));
  return html + "</ul>\n";
}

std::string tiles_of(const ServingScenario& s, const ServingEstimate& e, const ServingFit& fit) {
  const auto time = [](double mean, const std::array<double, 2>& interval, const char* name) {
    return text_tile(latency_text(mean), fmt::format("{}, 90 % interval {} to {}", name,
                                                     latency_text(mean * interval[0]),
                                                     latency_text(mean * interval[1])));
  };
  std::string html = "<div class=\"tiles\">\n";
  if (const auto& apart = s.plan.disaggregation) {
    html += text_tile(to_string(apart->prefill), "for prompts");
    html += text_tile(to_string(apart->decode), "for decoding");
  } else {
    html += text_tile(to_string(e.sizes), "plan");
  }
  if (e.fits) {
    const auto rates = output_interval(s, e, fit.intervals[0]);
    html += text_tile(
        format_integer(static_cast<long long>(e.output_per_s)),
        fmt::format("output tokens/s, 90 % interval {:.0f} to {:.0f}", rates[0], rates[1]));
    html += time(e.ttft.mean, fit.intervals[2], "first token");
    html += time(e.tpot.mean, fit.intervals[1], "next tokens");
    if (e.usd_per_million_output > 0) {
      html +=
          text_tile(fmt::format("{:.3g} $", e.usd_per_million_output), "a million output tokens");
    }
  }
  if (e.fits) {
    for (const AskedBound& bound : asked_bounds(s, e))
      html += text_tile(bound.kept ? "kept" : "missed", to_string(bound));
  }
  html += text_tile(e.fits ? format_bytes(e.memory.cache) : "does not fit",
                    fmt::format("for keys and values beside {} of weights, of {}",
                                format_bytes(e.memory.weights), format_bytes(e.memory.device)));
  return html + "</div>\n";
}

std::string estimate_html(const ServingScenario& s, const ServingEstimate& e,
                          const ServingFit& fit) {
  std::string html = tiles_of(s, e, fit);
  if (e.fits) {
    html += section("Where a token's time goes", table_html(token_table(e)));
    if (!s.plan.disaggregation) {
      const auto curve = load_curve(s, e.sizes);
      html += section("Latency over load", load_chart(curve) + table_html(load_table(curve)));
    }
    html += section("Why", sentences(serving_reasons(s, e)));
  }
  std::vector<std::string> assumed{fit.basis};
  if (const auto note = evidence_note(s, fit); !note.empty()) assumed.push_back(note);
  for (auto& note : serving_notes(s, e)) assumed.push_back(std::move(note));
  return html + section("Assumed", sentences(assumed));
}

std::string page(const ServingScenario& s, const std::string& body) {
  const std::string heading = serving_heading(s, {});
  const std::size_t end = heading.find('\n');
  const std::string lead = heading.substr(end + 1, heading.size() - end - 2);  // without its end
  return html_page(heading.substr(0, end),
                   fmt::format("<p class=\"lead\">{}</p>\n", html_text(lead)) + body,
                   std::string(report_head()));
}

}  // namespace

std::string load_chart(const std::vector<LoadPoint>& curve) {
  if (curve.size() < 2) return "";
  Chart chart{.label = "time a token over output tokens a second",
              .x_title = "output tokens/s",
              .y_title = "time a token",
              .y_text = [](double s) { return format_seconds(Seconds(s)); },
              .lines = {{.colour = "compute"}}};
  for (const auto& point : curve) {
    chart.x_values.push_back(point.output_per_s);
    chart.x_names.push_back(format_count(point.output_per_s));
    chart.lines[0].points.push_back(
        {.x = point.output_per_s,
         .y = point.tpot.value,
         .hover = fmt::format("{:.0f} in flight: {:.0f} tokens/s, {} a token", point.in_flight,
                              point.output_per_s, format_seconds(point.tpot))});
  }
  return chart_html(chart);
}

std::string serving_page(const ServingScenario& s, const ServingEstimate& e,
                         const ServingFit& fit) {
  return page(s, estimate_html(s, e, fit) + figures_section(serving_json(s, e, fit)));
}

std::string serving_search_page(const ServingScenario& s, const ServingSearch& found,
                                const ServingFit& fit) {
  std::string html;
  if (found.best.empty()) {
    html += section(unanswered_title(found), sentences(serving_remedies(s, found)));
    if (!found.nearest.empty()) {
      html += section("Nearest, simulated: none keeps what is asked",
                      table_html(serving_ranking(found.nearest)));
    }
  } else {
    const ServingCandidate& best = found.best.front();
    html += estimate_html(with_choice(s, best.choice), best.estimate, fit);
    html += section("Ranking", table_html(serving_ranking(found.best)));
  }
  if (!found.front.empty()) {
    html += section("Front: time a token against tokens/s a device",
                    table_html(serving_ranking(found.front)));
  }
  html += section("Search", sentences(search_sentences(s, found)));
  return page(s, html + figures_section(serving_search_json(s, found, fit)));
}

}  // namespace planner
