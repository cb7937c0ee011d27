#include "planner/commands/from_trace_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/accuracy/json_traces.hpp"
#include "planner/accuracy/trace_report.hpp"
#include "planner/search/settled_plan.hpp"
#include "planner/traces/trace_file.hpp"

namespace planner {

using namespace costmodel;

JobLog job_and_file(const std::string& word, const std::string& flag) {
  auto colon = word.rfind(':');
  if (colon == std::string::npos || path_exists(word)) return {"", word};
  for (auto at = colon; at != std::string::npos && at > 0; at = word.rfind(':', at - 1)) {
    if (!path_exists(word.substr(at + 1))) continue;
    colon = at;
    break;
  }
  JobLog pair{word.substr(0, colon), word.substr(colon + 1)};
  refuse_if(pair.job.empty() || pair.log.empty(),
            fmt::format("{} {} lacks a file", flag, quote(word)),
            "write JOB:LOG, or LOG alone where it prints its arguments");
  return pair;
}

namespace {

// Of each operator the mean, too.
void take_parts(TraceTimes& sum, const TraceTimes& rank, double old, double now) {
  for (PartTime& part : sum.parts) {
    part.time *= old;
    part.kernels *= old;
  }
  for (const PartTime& part : rank.parts) {
    auto at = std::ranges::find_if(sum.parts, [&](const PartTime& p) {
      return p.part == part.part && p.backward == part.backward;
    });
    if (at == sum.parts.end()) at = sum.parts.insert(at, {part.part, part.backward, Seconds(0), 0});
    at->time += now * part.time;
    at->kernels += now * part.kernels;
  }
  std::ranges::sort(sum.parts, std::ranges::greater{}, [](const PartTime& p) { return p.time; });
}

// The mean of ranks; kernels that are not attributed are listed of the first one. Collectives wait
// for the slowest rank in all others, so the rank that waited least has their time.
void take_rank(TraceTimes& sum, const TraceTimes& rank, double ranks) {
  const double old = (ranks - 1) / ranks, now = 1 / ranks;
  for (std::size_t kind = 0; kind < sum.kinds.size(); ++kind) {
    sum.kinds[kind] = old * sum.kinds[kind] + now * rank.kinds[kind];
    sum.numbers[kind] = old * sum.numbers[kind] + now * rank.numbers[kind];
  }
  for (const auto field : {&TraceTimes::kernels, &TraceTimes::no_kind, &TraceTimes::busy,
                           &TraceTimes::wall, &TraceTimes::other_rows, &TraceTimes::in_fp32,
                           &TraceTimes::in_16_bits, &TraceTimes::in_8_bits, &TraceTimes::compiled})
    sum.*field = old * (sum.*field) + now * (rank.*field);
  for (const auto field : {&TraceTimes::launches, &TraceTimes::host_records})
    sum.*field = old * (sum.*field) + now * (rank.*field);
  take_parts(sum, rank, old, now);
  // Without the time of collectives, whose kernels spin while they wait.
  const auto working = [](const TraceTimes& t) { return t.busy - t.exposed; };
  const Seconds work = old * working(sum) + now * working(rank);
  sum.communication = min(sum.communication, rank.communication);
  sum.exposed = min(sum.exposed, rank.exposed);
  sum.busy = work + sum.exposed;
  sum.least_wall = max(sum.least_wall, rank.least_wall);
}

}  // namespace

void add_rank(ReadTrace& read, const std::string& file, const Trace& trace,
              const TraceTimes& times) {
  if (trace.kernels.empty()) {
    throw ConfigError({file, 0, 0}, "has a pipeline's actions and no kernels",
                      "give it to explain-job, or its run's log to --from-log");
  }
  if (trace.devices > 1) {
    throw ConfigError({file, 0, 0}, fmt::format("has kernels of {} devices", trace.devices),
                      "give a file for each rank: profile each process by itself");
  }
  if (times.kernels.value <= 0) {
    throw ConfigError({file, 0, 0}, "has no kernel within its iterations",
                      "record at least one iteration from its beginning to its end");
  }
  if (read.file.empty()) {
    read = {file,
            {},
            trace.profiler,
            trace.device,
            !trace.operators.empty(),
            trace.has_sizes,
            trace.marked,
            times,
            trace.ranks,
            trace.rank};
    return;
  }
  read.more_ranks.push_back(file);
  take_rank(read.times, times, 1 + static_cast<double>(read.more_ranks.size()));
}

ReadTrace read_job_trace(const std::vector<std::string>& files, const Attributor& attributor) {
  ReadTrace read;
  for (const std::string& file : files) {
    const Trace trace = read_trace(file);
    add_rank(read, file, trace, times_of(trace, attributor));
  }
  return read;
}

std::string other_ranks(const std::string& file, int ranks, const ExpectedRanks& expected) {
  if (ranks == 0 || ranks == expected.count) return "";
  return fmt::format(
      "{} is of {} ranks, and the scenario of {} {}: give the scenario that ran (--set {}={})",
      printable(file), ranks, expected.count, expected.what, expected.key, ranks);
}

namespace {

// Files of one job: its ranks.
std::map<std::string, std::vector<std::string>> files_by_job(const Options& options) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& word : options.from_trace) {
    JobLog pair = job_and_file(word, "--from-trace");
    const std::string& job = pair.job.empty() ? options.job : pair.job;
    if (job.empty()) {
      throw ConfigError({pair.log, 0, 0}, "does not state what job it is of",
                        "write SCENARIO:TRACE, or --scenario FILE for all traces");
    }
    auto& of_job = files[job];
    if (std::ranges::find(of_job, pair.log) != of_job.end())
      throw ConfigError({pair.log, 0, 0}, "is given twice", "give each rank's file once");
    of_job.push_back(pair.log);
  }
  return files;
}

}  // namespace

TraceCalibration calibrated_by_traces(const Session& session, const SiteSpread& published,
                                      std::vector<std::string>& notes) {
  TraceCalibration all;
  std::vector<std::pair<Scenario, ParallelPlan>> jobs;
  for (const auto& [job, files] : files_by_job(session.options)) {
    JobOperand operand = read_job_operand(session, job, notes);
    Scenario scenario = with_constants(std::move(operand.scenario), {});
    const auto settled = settled_run(scenario);
    if (!settled) throw ConfigError({job, 0, 0}, no_valid_choice, "write the plan that ran");
    const std::string& stack = scenario.training.stack.name;
    if (!all.traces.empty() && stack != all.own.stack) {
      throw ConfigError({job, 0, 0},
                        fmt::format("is of {}, and another trace of {}", stack, all.own.stack),
                        "fit one stack at a time");
    }
    const std::string& device = scenario.cluster.device.name;
    if (!jobs.empty() && device != jobs.front().first.cluster.device.name) {
      throw ConfigError({job, 0, 0},
                        fmt::format("is on {}, and another trace on {}", device,
                                    jobs.front().first.cluster.device.name),
                        "fit one cluster at a time");
    }
    if (!scenario.plan.automatic.empty()) {
      notes.push_back(fmt::format("{}: the search has chosen {}; write the plan that ran",
                                  printable(job), to_string(settled->plan)));
    }
    all.own.stack = stack;
    all.launch = scenario.training.stack.host.kernel_launch;
    all.traces.push_back(fit_trace(scenario, settled->plan,
                                   read_job_trace(files, attributor_of(scenario, settled->plan))));
    refuse_other_job(all.traces.back(), scenario);
    std::string warning = other_ranks(files.front(), all.traces.back().read.ranks,
                                      {scenario.cluster.devices, "devices", "cluster.devices"});
    if (!warning.empty()) notes.push_back(std::move(warning));
    all.cluster = *operand.written.find("cluster");
    jobs.emplace_back(std::move(scenario), settled->plan);
  }
  if (all.traces.empty()) return all;
  all.own = traced_constants(all.traces, all.own.stack, all.launch);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    FittedTrace& trace = all.traces[i];
    trace.after =
        predicted_times(with_constants(jobs[i].first, all.own), jobs[i].second, trace.read.rank);
    all.runs.push_back({trace.read.file, trace.read.times.iterations, trace.unprofiled,
                        trace.after.iteration, jobs[i].first.training.error_band});
  }
  const OwnRunsFit interval = fit_own_runs(all.runs, all.own.stack, published);
  all.own.low = interval.measured.low;
  all.own.high = interval.measured.high;
  return all;
}

CommandResult from_traces(const Session& session, const TraceCalibration& traced,
                          const SiteSpread& published, CommandResult result) {
  const Options& options = session.options;
  const bool json = options.format == Format::json;
  OwnRunsFit fit;
  fit.runs = traced.runs;
  fit.measured = traced.own;
  const std::string profile = to_yaml(own_cluster(traced.cluster, fit, published));
  result.text = json ? traces_json(traced.traces, traced.own)
                     : trace_report(traced.traces, traced.own, traced.launch, session.style);
  if (!options.profile.empty()) write_file(options.profile, profile);
  if (json) return result;
  if (options.profile.empty()) {
    result.text += "\nThe cluster (--out FILE writes it):\n\n" + profile;
  } else {
    result.text +=
        fmt::format("Wrote {0}: plan, evaluate, sweep and others take --calibrated {0}.\n",
                    printable(options.profile));
  }
  return result;
}

}  // namespace planner
