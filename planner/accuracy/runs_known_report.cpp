#include "planner/accuracy/runs_known_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "costmodel/base/escape.hpp"

namespace planner {

namespace {

std::vector<std::string> known_row(const std::string& name, const KnownFigures& f) {
  const auto two = [](double value) { return fmt::format("{:.2f}", value); };
  return {name,
          fmt::format("{}", f.runs),
          two(f.none),
          two(f.time),
          two(f.parts),
          one_decimal(f.usual),
          one_decimal(f.covered),
          two(f.usual_width),
          two(f.width)};
}

}  // namespace

Table known_table(const RunsKnown& result) {
  Table t{{left("source"),
           "runs",
           "error %, none known",
           {fmt::format("{} known", result.known)},
           "by parts",
           "inside %, usual",
           "own",
           "width, usual",
           "own"}};
  for (const auto& [source, figures] : result.by_source)
    t.rows.push_back(known_row(costmodel::printable(source), figures));
  t.rows.push_back(known_row("mean over sources", result.mean));
  return t;
}

std::string known_report(const RunsKnown& r, const std::string& table) {
  const KnownFigures& m = r.mean;
  const bool falls = m.time < m.none;
  std::string text = fmt::format(
      "With {} run{} of a source known, the mean error of its other runs {} from {:.2f} to {:.2f} "
      "%, "
      "over {} sources,\nof which {} have a smaller one. The 90 % interval narrows from {:.2f} to "
      "{:.2f} (logarithm of high over low) and\nholds {:.1f} % of them.\n\n",
      r.known, r.known == 1 ? "" : "s", falls ? "falls" : "rises", m.none, m.time,
      r.by_source.size(), r.better, m.usual_width, m.width, m.covered);
  text += table;
  text += fmt::format(
      "\nEvery row by the other sources alone: constants fitted without it, and so the prior. "
      "Known "
      "runs are of one\ndevice and stack of the source, drawn 200 times. By parts: with a factor "
      "of "
      "its own also for {}.\n",
      fmt::join(site_constant_names.begin() + 1, site_constant_names.end(), ", for "));
  text += fmt::format(
      "The prior of all sources: a site's factor on time varies by {:.3f}, a run by itself by "
      "{:.3f} "
      "(of sites: by a factor of {:.2f}).\n",
      r.prior.spreads.front(), r.prior.noise, std::exp(r.prior.noise_spread));
  if (!r.small.empty()) {
    std::vector<std::string> names;
    for (const auto& name : r.small) names.push_back(costmodel::printable(name));
    text += fmt::format("Too few runs on one device by one stack: {}.\n", fmt::join(names, ", "));
  }
  return text;
}

}  // namespace planner
