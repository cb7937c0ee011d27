#include "planner/commands/from_log_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "costmodel/scenario/run_traits.hpp"
#include "planner/accuracy/json_own_runs.hpp"
#include "planner/commands/from_trace_command.hpp"
#include "planner/diagnosis/job_diagnosis.hpp"
#include "planner/frameworks/read_job.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Less than this is no steady state.
constexpr int least_iterations = 3;
// Log(measured / predicted) beyond which a log is not of this job: no published run is so far off.
constexpr double other_job = 1.1;  // a factor of 3

// A run, and what it shares with the others.
struct ReadRun {
  OwnRun run;
  std::string stack, device;
  Value cluster;   // as the scenario names it
  std::string on;  // the same as text, without the number of devices
  TrainingLog log;
};

std::string cluster_text(const Value& cluster) {
  if (!cluster.is_map()) {
    Value named;
    named.set("base", cluster);
    return to_yaml(named);
  }
  Value same = cluster;
  std::erase_if(same.entries, [](const auto& entry) { return entry.key == "devices"; });
  return to_yaml(same);
}

void require_same_settings(const std::vector<Contradiction>& found, const std::string& log) {
  if (found.empty()) return;
  const Contradiction& c = found.front();
  throw ConfigError(
      {log, 0, 0},
      fmt::format("says {} {}, and its job {}", c.key, shortened(c.log), shortened(c.scenario)),
      "give the log with the job that wrote it, or correct the job");
}

void require_plausible(const OwnRun& run) {
  if (run.iterations < least_iterations) {
    throw ConfigError({run.log, 0, 0},
                      fmt::format("has {} iteration{} after its warm-up", run.iterations,
                                  run.iterations == 1 ? "" : "s"),
                      fmt::format("give a log of {} or more", least_iterations));
  }
  if (std::abs(run.residual()) > other_job) {
    throw ConfigError(
        {run.log, 0, 0},
        fmt::format("takes {:.2g} times what its job is predicted to take: not a matter of a "
                    "cluster's constants",
                    std::exp(run.residual())),
        "see what shardplan explain-job says of it, and correct the job");
  }
}

// Whether a log holds its own arguments.
bool says_job(const std::string& log) {
  try {
    format_of(log);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

JobOperand job_of(const Session& session, const JobLog& pair, std::vector<std::string>& told) {
  const Options& options = session.options;
  if (!pair.job.empty()) return read_job_operand(session, pair.job, told);
  if (!options.job.empty()) return read_job_operand(session, options.job, told);
  if (!path_exists(pair.log)) {
    throw ConfigError({}, fmt::format("there is no file {}", quote(pair.log)),
                      "--from-log takes logs, or JOB:LOG");
  }
  if (!says_job(pair.log)) {
    throw ConfigError({pair.log, 0, 0}, "does not say what job it is of",
                      "write JOB:LOG, with the job's scenario, launch script or arguments, or "
                      "--job FILE for all logs");
  }
  return read_job_operand(session, pair.log, told);
}

// `known`: by traces of the same site.
ReadRun read_run(const Session& session, const JobLog& pair, const OwnRuns& known,
                 std::vector<std::string>& told) {
  JobOperand job = job_of(session, pair, told);
  job.scenario = with_constants(std::move(job.scenario), known);
  Scenario& s = job.scenario;
  s.training.error_band = find_band(session.path, traits_of(s));
  const auto settled = settled_run(s);
  if (!settled) throw ConfigError({s.file, 0, 0}, no_valid_choice, "write the plan that ran");
  ReadRun read;
  read.log = read_training_log(pair.log, iteration_size(s));
  require_same_settings(contradictions_of(s, settled->plan, read.log), pair.log);
  const Estimate predicted = estimate_of(s.model, s.cluster, s.training, settled->plan);
  read.run = {pair.log, read.log.pace.counted, read.log.pace.median, predicted.iteration,
              s.training.error_band};
  require_plausible(read.run);
  read.stack = s.training.stack.name;
  read.device = s.cluster.device.name;
  read.cluster = *job.written.find("cluster");
  read.on = cluster_text(read.cluster);
  if (!s.cluster.groups.empty()) {
    throw ConfigError({s.file, 0, 0}, "is on several kinds of devices",
                      "give runs on one kind: a factor of one is not the other's");
  }
  return read;
}

bool same_log(const TrainingLog& a, const TrainingLog& b) {
  const auto same = [](const LoggedIteration& x, const LoggedIteration& y) {
    return x.number == y.number && x.time == y.time;
  };
  return std::equal(a.iterations.begin(), a.iterations.end(), b.iterations.begin(),
                    b.iterations.end(), same);
}

// Throws unless the run goes with those before it.
void require_alike(const std::vector<ReadRun>& before, const ReadRun& run) {
  for (const ReadRun& other : before) {
    const auto refuse = [&](const std::string& what, const char* remedy) {
      throw ConfigError({run.run.log, 0, 0}, what, remedy);
    };
    if (same_log(other.log, run.log)) {
      refuse(fmt::format("holds the same iterations as {}", quote(other.run.log)),
             "give every run once: one that counts twice makes the interval too narrow");
    }
    if (other.stack != run.stack) {
      refuse(fmt::format("is of {}, and {} of {}", run.stack, quote(other.run.log), other.stack),
             "fit one stack at a time");
    }
    if (other.on != run.on) {
      refuse(fmt::format("is on another cluster than {}", quote(other.run.log)),
             "fit one cluster at a time; only its number of devices may differ");
    }
  }
}

SiteSpread published_spread(const Session& session) {
  const ResidualTable* table = find_residuals(session.path);
  if (table != nullptr && table->sites) return *table->sites;
  throw ConfigError({}, "shardplan: no residuals.yaml with `sites` was found, which hold a fit",
                    "add --config-path with the shipped configs, or write one with validate "
                    "--write-residuals");
}

}  // namespace

CommandResult from_log_command(const Session& session) {
  const Options& options = session.options;
  if (!options.profile.empty()) require_writable(options.profile);
  const SiteSpread published = published_spread(session);
  CommandResult result;
  const TraceCalibration traced = calibrated_by_traces(session, published, result.warnings);
  if (options.from_log.empty()) return from_traces(session, traced, published, result);
  std::vector<ReadRun> runs;
  for (const std::string& word : options.from_log) {
    ReadRun run = read_run(session, job_and_file(word, "--from-log"), traced.own, result.warnings);
    require_alike(runs, run);
    runs.push_back(std::move(run));
  }
  std::vector<OwnRun> own;
  for (const ReadRun& run : runs) {
    own.push_back(run.run);
    const double ratio = run.run.measured / run.run.predicted;
    if (ratio < run.run.usual.low || ratio > run.run.usual.high) {
      result.warnings.push_back(
          fmt::format("{} is outside its usual interval: shardplan explain-job may say why, and a "
                      "fault that can be mended is no constant of a cluster",
                      run.run.log));
    }
  }
  OwnRunsFit fit = fit_own_runs(std::move(own), runs.front().stack, published);
  fit.measured.traces = traced.own.traces;
  fit.measured.kernel_launch = traced.own.kernel_launch;
  const std::string profile = to_yaml(own_cluster(runs.front().cluster, fit, published));
  const bool json = options.format == Format::json;
  result.text = json ? own_runs_json(fit, published.sources)
                     : to_string(fit, published.sources, session.style.style.width) + "\n";
  if (options.profile.empty()) {
    if (json) return result;
    result.text += "The cluster (--out FILE writes it):\n\n" + profile;
    return result;
  }
  write_file(options.profile, profile);
  if (json) return result;
  result.text += fmt::format("Wrote {0}: write cluster: {{base: {0}, devices: N}} in a scenario.\n",
                             printable(options.profile));
  return result;
}

}  // namespace planner
