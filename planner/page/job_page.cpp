#include "planner/page/job_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/page/json_evaluation.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/page_style.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/page/svg_chart.hpp"
#include "planner/report/html_table.hpp"
#include "planner/report/log_report.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

// One column on a phone: a step of the waterfall is its words, and its bar under them.
constexpr std::string_view job_style = R"(<style>
.void{--c:transparent}.bar rect.void{stroke:none}
.step{margin:0 0 8px}.step p{display:flex;justify-content:space-between;gap:12px;margin:0;
font-size:13.5px;font-variant-numeric:tabular-nums}.step p b{white-space:nowrap;font-weight:400}
.step.sum p{font-weight:650}.step.sum p b{font-weight:650}
.cause{border-top:1px solid var(--line);padding:10px 0}.cause:first-of-type{border-top:0}
.cause summary{font-size:15px;font-weight:400;display:flow-root}
.cause summary b{float:right;margin-left:12px}
.cause dl{margin:8px 0 0}.cause dt{color:var(--dim);font-size:13px}.cause dd{margin:0 0 8px}
.do{font-size:16px;margin:0 0 10px}code{overflow-wrap:anywhere}
@media(max-width:480px){section{padding:14px}.tiles{grid-template-columns:1fr 1fr;gap:8px}
.tile b{font-size:21px}.chart svg{height:190px}}
</style>
)";

bool refused(const JobReport& job) { return job.diagnosis && !job.diagnosis->refusals.empty(); }

std::string tiles(const JobReport& job) {
  std::string html = "<div class=\"tiles\">\n";
  const auto& interval = job.estimate.interval;
  if (job.log && job.log->pace.median.value > 0) {
    html += text_tile(format_seconds(job.log->pace.median), "an iteration, measured");
    html += text_tile(fmt::format("{:.2f}×", job.log->pace.median / job.estimate.iteration),
                      "measured over predicted");
  }
  html += text_tile(format_seconds(job.estimate.iteration),
                    fmt::format("predicted, {} to {} in 90 of 100 jobs",
                                format_seconds(interval.low), format_seconds(interval.high)));
  html += text_tile(
      format_bytes(job.estimate.peak),
      fmt::format("predicted on the fullest device, of {}: {}", format_bytes(job.estimate.capacity),
                  job.estimate.fits() ? "fits" : "does not fit"));
  return html + "</div>\n";
}

// The lines of a report's text as the items of a list.
std::string listed(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto from = line.find_first_not_of(" *");
    if (from != std::string_view::npos)
      html += "<li>" + html_text(std::string(line.substr(from))) + "</li>\n";
  }
  return html.empty() ? "" : "<ul>\n" + html + "</ul>\n";
}

std::string verdict(const JobReport& job) {
  std::vector<std::string> sentences;
  if (job.memory) sentences.push_back(out_of_memory_text(*job.memory, *job.log));
  if (refused(job)) {
    for (const Refusal& one : job.diagnosis->refusals)
      sentences.push_back("This cannot be judged: " + one.what + ".");
  } else if (job.diagnosis) {
    sentences.push_back(job_verdict(job));
  }
  std::string html;
  for (const std::string& one : sentences)
    html += "<p class=\"verdict\">" + html_text(one) + "</p>\n";
  return html;
}

std::string remedy_section(const JobReport& job) {
  std::string html;
  const auto add = [&](const std::string& text) {
    html += "<p class=\"do\">" + html_text(text) + "</p>\n";
  };
  if (job.memory) {
    html += listed(memory_text(*job.memory, job.estimate, *job.log, {}));
  } else if (refused(job)) {
    for (const Refusal& one : job.diagnosis->refusals) add(one.remedy);
  } else if (job.diagnosis) {
    const Culprit& first = job_suspect(*job.diagnosis);
    add(first.remedy);
    if (!first.test.empty()) add("To settle it: " + first.test + ".");
    const std::string group = inseparable_text(*job.diagnosis);
    if (!group.empty()) add(group);
  }
  return section("Do this", html);
}

// A step of the waterfall: from where the one before ended.
std::string step(const std::string& name, std::string_view colour, Seconds from, Seconds size,
                 Seconds full, bool sum = false) {
  const std::vector<BarPart> parts{{"void", from.value, "", false},
                                   {colour, std::abs(size.value), name, size.value < 0}};
  return fmt::format("<div class=\"step{}\"><p><span>{}</span><b>{}{}</b></p>{}</div>\n",
                     sum ? " sum" : "", html_text(name),
                     size.value < 0 ? "−"
                     : sum          ? ""
                                    : "+",
                     format_seconds(Seconds(std::abs(size.value))),
                     bar_svg(parts, full.value, 0, name));
}

std::string waterfall_section(const JobReport& job) {
  if (!job.log || job.log->pace.median.value <= 0) return "";
  const Seconds measured = job.log->pace.median, predicted = job.estimate.iteration;
  const bool explained = job.diagnosis && !refused(job);
  const Seconds cause = explained ? job_suspect(*job.diagnosis).predicted.iteration : predicted;
  const Seconds full = max(measured, max(predicted, cause));
  std::string html;
  Seconds at;
  for (std::size_t i = 0; i < breakdown_parts.size(); ++i) {
    const Seconds time = job.estimate.breakdown.*breakdown_parts[i];
    const ShownPart& part = shown_times()[i];
    constexpr double least = 0.002;  // of the picture's width
    if (time > full * least) html += step(std::string(part.name), part.colour, at, time, full);
    at += time;
  }
  html += step("predicted", "span", Seconds(), predicted, full, true);
  // What shrinks ends where the next step begins.
  const auto change = [&](const std::string& name, std::string_view colour, Seconds from,
                          Seconds to) {
    constexpr double visible = 0.001;
    if (std::abs((to - from).value) < visible * full.value) return;
    html += step(name, colour, min(from, to), to - from, full);
  };
  if (explained) {
    const Culprit& first = job_suspect(*job.diagnosis);
    change(first.what, "ep", predicted, cause);
  }
  change("not explained", "other", cause, measured);
  html += step("measured", "point", Seconds(), measured, full, true);
  return section("Measured against predicted", html);
}

std::string series_section(const JobReport& job) {
  if (!job.log || job.log->iterations.size() < 3) return "";
  const auto& all = job.log->iterations;
  constexpr std::size_t most_points = 600;
  const std::size_t every = 1 + all.size() / most_points;
  ChartLine measured{.colour = "compute", .name = "measured"};
  ChartLine predicted{.colour = "tp", .name = "predicted"};
  const auto x = [](const LoggedIteration& one) { return static_cast<double>(one.number); };
  // Warm-up would leave the rest no room.
  const double top = 3 * std::max(job.log->pace.mean.value, job.log->pace.late.value);
  for (std::size_t i = 0; i < all.size(); i += every) {
    const bool slow = std::ranges::any_of(
        job.log->pace.slow, [&](const auto& one) { return one.number == all[i].number; });
    measured.points.push_back(
        {.x = x(all[i]),
         .y = std::min(all[i].time.value, top),
         .hover = fmt::format("iteration {}: {}", all[i].number, format_seconds(all[i].time)),
         .marked = slow});
  }
  for (const auto* end : {&all.front(), &all.back()}) {
    predicted.points.push_back({.x = x(*end),
                                .y = job.estimate.iteration.value,
                                .hover = format_seconds(job.estimate.iteration)});
  }
  Chart chart{.label = "the time of each iteration",
              .x_title = "iteration",
              .y_text = [](double y) { return format_seconds(Seconds(y)); },
              .lines = {std::move(measured), std::move(predicted)},
              .even = true};
  for (const std::size_t i : {std::size_t{0}, all.size() / 2, all.size() - 1}) {
    chart.x_names.push_back(std::to_string(all[i].number));
    chart.x_values.push_back(x(all[i]));
  }
  return section("Iterations", chart_html(chart) + listed(log_text(*job.log, {})));
}

std::string cause_html(const Culprit& c, const JobReport& job, bool open) {
  const Seconds excess = job.log->pace.median - job.estimate.iteration;
  std::string facts;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) facts += fmt::format("<dt>{}</dt><dd>{}</dd>", name, html_text(text));
  };
  if (c.name != "none-of-these") {
    std::string takes = format_seconds(c.predicted.iteration) + " an iteration";
    constexpr double visible = 0.02;
    if (excess > job.estimate.iteration * visible) {
      const double share = (c.predicted.iteration - job.estimate.iteration) / excess;
      takes += fmt::format(", {:.0f} % of the time beyond what is predicted", 100 * share);
    }
    add("It would take", takes);
    if (c.gained.value > 0) {
      add("Repaired", fmt::format("{} an iteration, {} less", format_seconds(c.repaired),
                                  format_seconds(c.gained)));
    }
  }
  add("Do", c.remedy);
  add("What settles it", c.test);
  add("Before the log", fmt::format("{}: {}", chance_text(c.prior), c.because));
  const std::vector<BarPart> bar{{"tp", c.probability, chance_text(c.probability), false}};
  return fmt::format(
      "<details class=\"cause\"{}><summary><b>{}</b>{}{}</summary><dl>{}</dl></details>\n",
      open ? " open" : "", chance_text(c.probability), html_text(c.what),
      bar_svg(bar, 1, 0, chance_text(c.probability)), facts);
}

std::string causes_section(const JobReport& job) {
  if (!job.diagnosis || refused(job)) return "";
  constexpr double least = 0.01;
  std::string html;
  for (const Culprit& c : job.diagnosis->culprits) {
    if (c.probability < least && !html.empty()) continue;
    html += cause_html(c, job, html.empty());
  }
  for (const RuledOut& r : job.diagnosis->ruled_out) {
    html += fmt::format("<p class=\"note\">Not {}: the log states {} {}.</p>\n", html_text(r.name),
                        html_text(r.key), html_text(r.value));
  }
  return section("Causes", html);
}

std::string parts_section(const JobReport& job) {
  if (!job.diagnosis || refused(job)) return "";
  return section("Parts and memory", table_html(job_parts_table(*job.diagnosis, *job.log)));
}

std::string help_section(const JobReport& job) {
  std::string html;
  for (const Remedy& one : job.fitting) html += "<li>" + html_text(one.sentence()) + "</li>\n";
  for (const JobChange& c : job.changes) {
    html += fmt::format("<li>{} {}: {:.1f} % faster (chance that it is faster {})</li>\n",
                        html_text(c.knob), html_text(c.change), 100 * (1 / c.ratio - 1),
                        chance_text(c.probability));
  }
  return section("What would help, one change at a time",
                 html.empty() ? "" : "<ul>\n" + html + "</ul>\n");
}

}  // namespace

std::string job_page(const JobReport& job, const Scenario& s, const std::string& json) {
  const std::string about = heading(s, {});
  const std::string title = about.substr(0, about.find('\n'));
  std::string html = verdict(job);
  if (job.log && job.log->pace.median.value > 0)
    html += "<p class=\"lead\">" + html_text(measured_text(job)) + "</p>\n";
  html += tiles(job) + remedy_section(job) + waterfall_section(job) + causes_section(job) +
          series_section(job) + parts_section(job) + help_section(job) +
          figures_section(json, "scenario");
  return html_page(title, html, std::string(report_head()) + std::string(job_style));
}

}  // namespace planner
