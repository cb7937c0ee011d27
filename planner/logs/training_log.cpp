#include "planner/logs/training_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"
#include "planner/logs/log_formats.hpp"
#include "planner/logs/log_line.hpp"

namespace planner {

using namespace costmodel;

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The lines of one rank: the first of each iteration, in order.
std::vector<IterationLine> once_each(std::vector<IterationLine> lines) {
  std::ranges::stable_sort(lines, {}, &IterationLine::number);
  const auto same = [](const auto& a, const auto& b) { return a.number == b.number; };
  lines.erase(std::unique(lines.begin(), lines.end(), same), lines.end());
  return lines;
}

// Times as printed; else from stamp to stamp; else from rates and the size of an iteration.
std::vector<LoggedIteration> timed(const std::vector<IterationLine>& lines,
                                   const IterationSize& size, bool& stamped) {
  std::vector<LoggedIteration> times;
  const auto add = [&](std::int64_t number, double seconds) {
    constexpr double longest = 1e9;
    if (seconds > 0 && seconds < longest) times.push_back({number, Seconds(seconds)});
  };
  const bool printed =
      std::ranges::any_of(lines, [](const auto& l) { return l.seconds.has_value(); });
  const auto stamps =
      std::ranges::count_if(lines, [](const auto& l) { return l.stamp.has_value(); });
  stamped = !printed && stamps > 2;
  const IterationLine* last = nullptr;
  for (const IterationLine& line : lines) {
    if (printed) {
      add(line.number, line.seconds.value_or(0));
    } else if (stamped) {
      if (!line.stamp) continue;
      if (last != nullptr) {
        const auto iterations = static_cast<double>(line.number - last->number);
        add(line.number, (*line.stamp - *last->stamp) / iterations);
      }
      last = &line;
    } else if (line.sequences_per_s > 0) {
      add(line.number, size.sequences / line.sequences_per_s);
    } else if (line.tokens_per_s_per_device > 0) {
      add(line.number, size.tokens_per_device / line.tokens_per_s_per_device);
    }
  }
  return times;
}

double median_rate(const std::vector<IterationLine>& lines, double IterationLine::*rate) {
  std::vector<double> values;
  for (const IterationLine& line : lines)
    if (line.*rate > 0) values.push_back(line.*rate);
  return median(std::move(values));
}

std::vector<LoggedPart> medians(const std::vector<PartLine>& lines) {
  std::vector<LoggedPart> parts;
  for (std::size_t i = 0; i < job_part_names.size(); ++i) {
    const auto part = static_cast<JobPart>(i);
    std::vector<double> least, most;
    for (const PartLine& line : lines) {
      if (line.part != part) continue;
      least.push_back(line.least);
      most.push_back(line.most);
    }
    if (!most.empty())
      parts.push_back({part, Seconds(median(std::move(least))), Seconds(median(std::move(most)))});
  }
  return parts;
}

// The distance of one slow iteration from the next, if it is always the same.
std::int64_t period_of(const std::vector<LoggedIteration>& slow) {
  if (slow.size() < 3) return 0;
  const std::int64_t first = slow[1].number - slow[0].number;
  for (std::size_t i = 2; i < slow.size(); ++i)
    if (slow[i].number - slow[i - 1].number != first) return 0;
  return first;
}

}  // namespace

const LoggedPart* TrainingLog::part(JobPart which) const {
  const auto at = std::ranges::find(parts, which, &LoggedPart::part);
  return at == parts.end() ? nullptr : &*at;
}

const std::string* TrainingLog::says(std::string_view key) const {
  const auto at = std::ranges::find(said, key, &Saying::key);
  return at == said.end() ? nullptr : &at->value;
}

Pace pace_of(const std::vector<LoggedIteration>& iterations) {
  Pace pace;
  if (iterations.empty()) return pace;
  // The first ten iterations of a job warm up; a piece from its middle has a first line that may
  // hold a checkpoint.
  constexpr int warm = 10, enough = 3;
  const auto late =
      std::ranges::count_if(iterations, [](const auto& i) { return i.number > warm; });
  const bool from_start = late >= enough && iterations.front().number <= warm;
  std::vector<LoggedIteration> steady;
  for (const LoggedIteration& it : iterations)
    if (!from_start || it.number > warm) steady.push_back(it);
  if (!from_start && steady.size() > enough) steady.erase(steady.begin());
  pace.warm_up = static_cast<int>(iterations.size() - steady.size());
  pace.counted = static_cast<int>(steady.size());
  std::vector<double> times, deviations;
  for (const LoggedIteration& it : steady) times.push_back(it.time.value);
  const double middle = median(times);
  pace.median = Seconds(middle);
  for (const double time : times) pace.mean += Seconds(time / static_cast<double>(times.size()));
  for (const double time : times) deviations.push_back(std::abs(time - middle));
  constexpr double of_normal = 1.4826;  // standard deviation over median deviation
  pace.spread = of_normal * median(std::move(deviations)) / middle;
  for (const LoggedIteration& it : steady)
    if (it.time.value > middle * (1 + std::max(0.1, 5 * pace.spread))) pace.slow.push_back(it);
  pace.period = period_of(pace.slow);
  return pace;
}

TrainingLog parse_training_log(std::string_view text, const std::string& file,
                               const IterationSize& size) {
  LogDraft draft;
  while (!text.empty()) {
    const auto end = text.find_first_of("\n\r");  // a progress bar writes over its line
    read_log_line(without_colors(text.substr(0, end)), draft);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  TrainingLog& log = draft.log;
  const auto lines = once_each(std::move(draft.iterations));
  log.iterations = timed(lines, size, log.stamped);
  if (log.iterations.empty()) {
    throw ConfigError({file, 0, 0}, "nothing measured in this log",
                      fmt::format("looked for {}", fmt::join(known_log_lines(), "; ")));
  }
  log.pace = pace_of(log.iterations);
  log.parts = medians(draft.parts);
  log.sequences_per_s = median_rate(lines, &IterationLine::sequences_per_s);
  log.tokens_per_s_per_device = median_rate(lines, &IterationLine::tokens_per_s_per_device);
  return std::move(draft.log);
}

TrainingLog read_training_log(const std::string& file, const IterationSize& size) {
  return parse_training_log(read_file(file, measurement_limits), file, size);
}

}  // namespace planner
