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

// The lines of one rank: the first of each iteration, in order.
std::vector<IterationLine> once_each(std::vector<IterationLine> lines) {
  // A line with a time says more than DeepSpeed's line of the same iteration.
  if (std::ranges::any_of(lines, [](const auto& l) { return l.seconds.has_value(); }))
    std::erase_if(lines, [](const auto& l) { return !l.seconds.has_value(); });
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

// Of DeepSpeed's timers and a trainer's own, those with more parts.
std::vector<PartLine> of_one_timer(std::vector<PartLine> lines) {
  const auto deepspeed = std::ranges::count(lines, true, &PartLine::deepspeed);
  const bool most = 2 * deepspeed >= static_cast<std::ptrdiff_t>(lines.size());
  if (deepspeed > 0) std::erase_if(lines, [&](const PartLine& l) { return l.deepspeed != most; });
  return lines;
}

// Rates that the log works out from its times; a figure that never changes is not one.
double varying_rate(const std::vector<double>& rates) {
  const bool constant =
      std::ranges::all_of(rates, [&](double one) { return one == rates.front(); });
  return rates.size() < 3 || constant ? 0 : median(rates);
}

// How often a job's count of iterations went back by more than ranks that print out of order do.
int restarts_of(const std::vector<IterationLine>& lines) {
  constexpr std::int64_t out_of_order = 2;
  int restarts = 0;
  std::int64_t highest = 0;
  for (const IterationLine& line : lines) {
    if (line.number > 0 && line.number + out_of_order < highest) {
      ++restarts;
      highest = line.number;
    }
    highest = std::max(highest, line.number);
  }
  return restarts;
}

// The batch by what a job has consumed from line to line, where the log does not state it.
void settle_batch(const std::vector<IterationLine>& lines, const LogDraft& draft,
                  TrainingLog& log) {
  if (log.stated("training.global_batch") != nullptr) return;
  std::vector<double> batches;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const double seen = lines[i].samples_seen - lines[i - 1].samples_seen;
    const auto steps = static_cast<double>(lines[i].number - lines[i - 1].number);
    if (lines[i - 1].samples_seen > 0 && seen > 0 && steps > 0) batches.push_back(seen / steps);
  }
  double batch = median(batches);
  if (batches.empty() && draft.summary_steps_per_s > 0)
    batch = draft.summary_samples_per_s / draft.summary_steps_per_s;
  const double nearest = std::round(batch);
  constexpr double rounded = 0.02;  // of a summary's rates, which have three digits
  if (nearest < 1 || std::abs(batch - nearest) > rounded * nearest) return;
  if (batches.empty() && nearest > 64) return;  // three digits do not settle it
  log.settings.push_back({"training.global_batch", fmt::format("{:.0f}", nearest)});
}

// What an iteration takes, by the rate and the stamps of the same lines.
void settle_sizes(const std::vector<IterationLine>& lines, TrainingLog& log) {
  std::vector<double> sequences, tokens;
  const IterationLine* last = nullptr;
  for (const IterationLine& line : lines) {
    if (!line.stamp) continue;
    if (last != nullptr && line.number > last->number) {
      const double seconds =
          (*line.stamp - *last->stamp) / static_cast<double>(line.number - last->number);
      sequences.push_back(line.sequences_per_s * seconds);
      tokens.push_back(line.tokens_per_s_per_device * seconds);
    }
    last = &line;
  }
  log.sequences_each = median(std::move(sequences));
  log.tokens_each_per_device = median(std::move(tokens));
}

// The times of a log that has none of single iterations but a summary of all.
void add_summary(const LogDraft& draft, TrainingLog& log) {
  constexpr std::size_t enough = 3;
  if (draft.summary_steps_per_s <= 0 || log.iterations.size() >= enough) return;
  log.iterations = {{1, Seconds(1 / draft.summary_steps_per_s)}};
  log.averaged =
      std::max<std::int64_t>(1, std::llround(draft.summary_s * draft.summary_steps_per_s));
}

}  // namespace

const LoggedPart* TrainingLog::part(JobPart which) const {
  const auto at = std::ranges::find(parts, which, &LoggedPart::part);
  return at == parts.end() ? nullptr : &*at;
}

const std::string* TrainingLog::stated(std::string_view key) const {
  const auto at = std::ranges::find(settings, key, &LoggedSetting::key);
  return at == settings.end() ? nullptr : &at->value;
}

TrainingLog parse_training_log(std::string_view text, const std::string& file,
                               const IterationSize& size) {
  LogDraft draft;
  FailedIn last_seen = FailedIn::unknown;
  for (std::size_t row = 1; !text.empty(); ++row) {
    const auto end = text.find_first_of("\n\r");  // a progress bar writes over its line
    const std::string line = without_colors(text.substr(0, end));
    if (!read_log_line(line, draft)) {
      read_sign(line, row, draft.log.signs);
      read_out_of_memory(line, last_seen, draft.log.out_of_memory);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  TrainingLog& log = draft.log;
  log.restarts = restarts_of(draft.iterations);
  const auto lines = once_each(std::move(draft.iterations));
  log.iterations = timed(lines, size, log.stamped);
  add_summary(draft, log);
  if (log.iterations.empty() && !log.out_of_memory) {
    throw ConfigError({file, 0, 0}, "nothing measured in this log",
                      fmt::format("looked for {}", fmt::join(known_log_lines(), "; ")));
  }
  log.pace = pace_of(log.iterations);
  log.parts = medians(of_one_timer(std::move(draft.parts)));
  if (log.stamped) settle_sizes(lines, log);
  log.sequences_per_s = median_rate(lines, &IterationLine::sequences_per_s);
  log.tokens_per_s_per_device = median_rate(lines, &IterationLine::tokens_per_s_per_device);
  log.flops_per_s_per_device = varying_rate(draft.flops_per_s);
  settle_batch(lines, draft, log);
  std::ranges::sort(log.ranks, {}, &RankMemory::rank);
  return std::move(draft.log);
}

TrainingLog read_training_log(const std::string& file, const IterationSize& size) {
  return parse_training_log(read_file(file, measurement_limits), file, size);
}

}  // namespace planner
