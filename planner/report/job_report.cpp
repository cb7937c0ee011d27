#include "planner/report/job_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/log_report.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

using namespace costmodel;

namespace {

// "23 % slower", "4 % faster", "12 times as long".
std::string slower_text(double ratio) {
  if (ratio > 3) return fmt::format("{:.3g} times as long", ratio);
  return fmt::format("{:.0f} % {}", 100 * std::abs(ratio - 1), ratio < 1 ? "faster" : "slower");
}

// Below this a probability is no finding.
constexpr double clear = 0.5;
constexpr double settled = 0.9;        // ... and above this, the others need no sentence
constexpr double worth_telling = 0.1;  // one of the others
constexpr double least_told = 0.005;   // a row of the table

// Whether the log leaves open that nothing is wrong, though a fault may be.
bool unsettled(const JobDiagnosis& d) {
  return d.culprits.front().name == "as-configured" && d.culprits.front().probability < clear;
}

}  // namespace

const Culprit& job_suspect(const JobDiagnosis& d) { return d.culprits[unsettled(d) ? 1 : 0]; }

std::string job_verdict(const JobReport& job) {
  const JobDiagnosis& d = *job.diagnosis;
  const Culprit& first = job_suspect(d);
  const std::string chance = chance_text(first.probability);
  if (first.name == "as-configured" && job.log->pace.median < job.estimate.interval.low) {
    return fmt::format(
        "Nothing slows this job ({}): it is faster than its interval, so the prediction or the "
        "scenario is off.",
        chance);
  }
  if (first.name == "as-configured") {
    return fmt::format("Nothing stands out ({}): the job runs as its configuration makes it.",
                       chance);
  }
  if (unsettled(d)) {
    return fmt::format(
        "This log does not settle it. Nothing may be wrong ({}); the likeliest fault ({}): {}.",
        chance_text(d.culprits.front().probability), chance, first.what);
  }
  const char* how =
      first.probability >= clear ? "Most likely" : "This log does not settle it; likeliest";
  return fmt::format("{} ({}): {}.", how, chance, first.what);
}

namespace {

// What to log so that causes can be told apart.
std::string more_evidence(const TrainingLog& log) {
  if (log.framework.starts_with("Megatron"))
    return "Twenty iterations with --timing-log-level 2 would tell more.";
  if (log.framework == "DeepSpeed")
    return "Twenty iterations with wall_clock_breakdown: true would tell more.";
  return "A profile of one iteration (torch.profiler, nsys) would tell more.";
}

}  // namespace

std::string measured_text(const JobReport& job) {
  const Seconds measured = job.log->pace.median, predicted = job.estimate.iteration;
  const auto& interval = job.estimate.interval;
  const std::string mean =
      job.log->pace.slow.empty()
          ? ""
          : fmt::format(" ({} on average with the slow ones)", format_seconds(job.log->pace.mean));
  const bool inside = interval.low <= measured && measured <= interval.high;
  return fmt::format(
      "An iteration takes {}{}; {} was predicted ({} to {} in 90 of 100 jobs): {}, {} that "
      "interval.",
      format_seconds(measured), mean, format_seconds(predicted), format_seconds(interval.low),
      format_seconds(interval.high), slower_text(measured / predicted),
      inside ? "inside" : "outside");
}

namespace {

// The time from which changes are counted: the job's own, where its log is believed.
Seconds base_of(const JobReport& job) {
  return job.diagnosis && job.diagnosis->refusals.empty() ? job.log->pace.median
                                                          : job.estimate.iteration;
}

Table change_table(const JobReport& job) {
  Table t{{left("change"), "iteration", right("90 % interval", 3), right("faster", 0), "chance",
           right("GiB", 2), left("", 0)}};
  const Seconds now = base_of(job);
  for (const JobChange& c : job.changes) {
    t.rows.push_back(
        {fmt::format("{} {}", c.knob, c.change), format_seconds(now * c.ratio),
         fmt::format("{} to {}", format_seconds(now * c.low), format_seconds(now * c.high)),
         fmt::format("{:.1f} %", 100 * (1 / c.ratio - 1)), chance_text(c.probability),
         format_gib(c.peak), c.breaks_fixed ? "(fixed by the scenario)" : ""});
  }
  return t;
}

std::string best_text(const JobReport& job) {
  if (job.stopped) return "The search for the best plan was stopped.";
  if (!job.best) return "";
  const JobChange& c = job.best->change;
  if (!job.estimate.fits() && c.ratio > 0.998) {
    return fmt::format("The best plan that fits takes {} an iteration: {}.",
                       format_seconds(job.best->estimate.iteration), c.change);
  }
  if (c.ratio > 0.998) return "The plan is the best one, or as good.";
  const Seconds now = base_of(job);
  return fmt::format(
      "The best plan is {:.1f} % faster: {} an iteration (90 % interval {} to {}; "
      "{} "
      "that it is faster at all): {}.",
      100 * (1 / c.ratio - 1), format_seconds(now * c.ratio), format_seconds(now * c.low),
      format_seconds(now * c.high), chance_text(c.probability), c.change);
}

}  // namespace

std::string inseparable_text(const JobDiagnosis& d) {
  if (d.inseparable.empty()) return "";
  std::string names, tests;
  for (const std::string& name : d.inseparable) {
    const Culprit& one = *std::ranges::find(d.culprits, name, &Culprit::name);
    names += (names.empty() ? "" : ", ") + name;
    tests += fmt::format("{}{}: {}", tests.empty() ? "" : "; ", name, one.test);
  }
  return fmt::format(
      "This log cannot separate {}: each gives the same time, memory and series. What "
      "settles it: {}.",
      names, tests);
}

Table culprit_table(const JobDiagnosis& d) {
  Table t{{"chance", right("before", 2), left("cause", 0), left("what"), "would take",
           right("gains", 0)}};
  for (const Culprit& c : d.culprits) {
    if (c.probability < least_told && !t.rows.empty()) continue;
    const bool none = c.name == "none-of-these";
    t.rows.push_back({chance_text(c.probability), chance_text(c.prior), c.name, c.what,
                      none ? "" : format_seconds(c.predicted.iteration),
                      none || c.gained.value <= 0 ? "" : format_seconds(c.gained)});
  }
  return t;
}

Table job_parts_table(const JobDiagnosis& d, const TrainingLog& log) {
  Table t{{left("part"), "predicted", "measured", "measured/predicted", "by the cause"}};
  const PredictedJob& cause = job_suspect(d).predicted;
  const auto ratio = [](double measured, double predicted) {
    return predicted > 0 ? fmt::format("{:.2f}", measured / predicted) : std::string();
  };
  t.rows.push_back(
      {"iteration", format_seconds(d.expected.iteration), format_seconds(log.pace.median),
       ratio(log.pace.median.value, d.expected.iteration.value), format_seconds(cause.iteration)});
  const auto row = [&](const std::string& name, Seconds expected, Seconds measured, Seconds by) {
    t.rows.push_back({name, format_seconds(expected), format_seconds(measured),
                      ratio(measured.value, expected.value), format_seconds(by)});
  };
  for (const LoggedPart& part : log.parts) {
    const auto i = static_cast<std::size_t>(part.part);
    if (!d.expected.has_parts) break;
    if (part.most.value <= 0 && d.expected.parts[i].most.value <= 0) continue;
    const std::string name(job_part_names[i]);
    const bool ranks = part.least < part.most;
    if (ranks) row(name + ", least", d.expected.parts[i].least, part.least, cause.parts[i].least);
    row(ranks ? name + ", most" : name, d.expected.parts[i].most, part.most, cause.parts[i].most);
  }
  const bool allocated = log.allocated.value > 0;
  const auto measured = allocated ? log.allocated : log.reserved;
  if (measured.value > 0) {
    const auto expected = allocated ? d.expected.allocated : d.expected.reserved;
    t.rows.push_back({allocated ? "memory, allocated" : "memory, reserved", format_bytes(expected),
                      format_bytes(measured), ratio(measured.value, expected.value),
                      format_bytes(allocated ? cause.allocated : cause.reserved)});
  }
  return t;
}

namespace {

// Of a job with other settings, causes say little.
std::string contradictions_text(const JobDiagnosis& d, const ReportStyle& style) {
  if (d.contradictions.empty() || job_suspect(d).name == "other-settings") return "";
  std::string list;
  for (const Contradiction& c : d.contradictions) {
    list += fmt::format("{}{} {} by the log, {} by the scenario", list.empty() ? "" : "; ", c.key,
                        c.log, c.scenario);
  }
  const std::string line = fmt::format("Mend the scenario first, it is of another job: {}.", list);
  return style.style.bold(escaped(line, style)) + "\n";
}

std::string culprit_text(const JobReport& job, const ReportStyle& style) {
  const JobDiagnosis& d = *job.diagnosis;
  const Culprit& first = job_suspect(d);
  std::string text = contradictions_text(d, style);
  text += style.style.bold(escaped(job_verdict(job), style)) + "\n";
  text += bullet(measured_text(job), style);
  const bool likely = first.probability >= clear || first.gained > job.log->pace.median * clear;
  if (first.gained.value > 0 && likely && first.name != "as-configured") {
    text += bullet(fmt::format("Repaired, an iteration should take about {} ({} less).",
                               format_seconds(first.repaired), format_seconds(first.gained)),
                   style);
  }
  text += bullet("Do: " + first.remedy, style);
  if (!first.test.empty() && first.probability < settled)
    text += bullet("To settle it: " + first.test + ".", style);
  int others = 0;
  for (const Culprit& c : d.culprits) {
    const bool other = &c != &first && c.name != "as-configured";
    if (!other || c.probability < worth_telling || first.probability > settled || others == 2)
      continue;
    ++others;
    text +=
        bullet(fmt::format("Or ({}): {}. {}", chance_text(c.probability), c.what, c.remedy), style);
  }
  text += bullet(escaped(inseparable_text(d), style), style);
  if (first.probability < clear && job.log->parts.empty())
    text += bullet(more_evidence(*job.log), style);
  return text;
}

std::string evidence_text(const JobReport& job, const ReportStyle& style) {
  const JobDiagnosis& d = *job.diagnosis;
  std::string text = table_section("Causes (before: without the log)", culprit_table(d), style);
  for (const RuledOut& r : d.ruled_out) {
    text += bullet(fmt::format("Not {}: the log says {} {}.", r.name, r.key, r.value), style);
  }
  text += table_section("Predicted beside measured, and what the likeliest cause would give",
                        job_parts_table(d, *job.log), style);
  text += log_text(*job.log, style);
  return text;
}

}  // namespace

std::string job_report(const JobReport& job, const Scenario& s, const ReportStyle& style) {
  std::string text;
  const bool refused = job.diagnosis && !job.diagnosis->refusals.empty();
  if (job.memory) text += memory_text(*job.memory, job.estimate, *job.log, style) + "\n";
  if (refused) {
    text += refusal_text(job.diagnosis->refusals, style);
    text += bullet(measured_text(job), style) + "\n";
  } else if (job.diagnosis) {
    text += culprit_text(job, style) + "\n";
  }
  text += heading(s, style);
  text += bullet(to_string(job.estimate.plan), style);
  if (job.diagnosis && !refused) {
    text += evidence_text(job, style);
  } else {
    text +=
        bullet(fmt::format("Predicted: {} an iteration (90 % interval {} to {}), {} of {}",
                           format_seconds(job.estimate.iteration),
                           format_seconds(job.estimate.interval.low),
                           format_seconds(job.estimate.interval.high),
                           format_bytes(job.estimate.peak), format_bytes(job.estimate.capacity)),
               style);
    Evaluator evaluator(s.model, s.cluster, s.training);
    const auto busiest = busiest_rank(job.estimate, evaluator);
    text += table_section("Where the time goes",
                          time_table(job.estimate, style.style.width, busiest), style);
    const Seconds waits = host_waits(job.estimate, busiest, evaluator);
    for (const auto& reason : reasons(job.estimate, busiest, waits)) text += bullet(reason, style);
  }
  if (refused) text += log_text(*job.log, style);
  text += fitting_report(job.fitting, style);
  text += section_title("What would help most, one change at a time", style);
  text += job.changes.empty() ? bullet("No plan one step away is faster and fits.", style)
                              : section_table(change_table(job), style);
  text += bullet(best_text(job), style);
  text += bullet(s.training.error_band.basis, style);
  return text;
}

}  // namespace planner
