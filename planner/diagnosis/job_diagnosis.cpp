#include "planner/diagnosis/job_diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"

namespace planner {

using namespace costmodel;

namespace {

// How wide what is measured lies around what a hypothesis predicts.
struct Widths {
  double faster, slower;  // standard deviations of log(measured / predicted) of the iteration
  double part, least_part, ranks, memory;
};

// z of the 95th percentile.
constexpr double z95 = 1.6449;

Widths of_prediction(const ErrorBand& band) {
  return {.faster = -std::log(band.low) / z95,
          .slower = std::log(band.high) / z95,
          .part = band.pair_spread,
          .least_part = 0.01,
          .ranks = 0.05,
          .memory = 0.04};
}

// Of what is in no hypothesis: a job twice as slow is no surprise, and all else may be anything.
Widths of_none(const ErrorBand& band) {
  return {.faster = -std::log(band.low) / z95,
          .slower = std::max(0.7, std::log(band.high) / z95),
          .part = 0.5,
          .least_part = 0.1,
          .ranks = 0.2,
          .memory = 0.3};
}

double log_student(double x, double scale) {
  constexpr double degrees = 3;
  const double normal = 2 / (std::numbers::pi * std::sqrt(degrees));  // of 3 degrees of freedom
  const double z = x / scale;
  return std::log(normal / scale) - (degrees + 1) / 2 * std::log1p(z * z / degrees);
}

double log_two_sided(double x, double below, double above) {
  const double z = x / (x < 0 ? below : above);
  return std::log(std::sqrt(2 / std::numbers::pi) / (below + above)) - z * z / 2;
}

// A part that both the log and the prediction have.
double log_part(const LoggedPart& logged, const PredictedPart& expected, double off,
                Seconds iteration, const Widths& w) {
  const double most = off * expected.most.value;
  double sum = log_student(logged.most.value - most,
                           std::max(w.part * most, w.least_part * iteration.value));
  const bool compared = logged.part == JobPart::forward || logged.part == JobPart::backward;
  if (compared && logged.least.value > 0 && logged.least < logged.most &&
      expected.least.value > 0) {
    sum += log_student(
        std::log(logged.most / logged.least) - std::log(expected.most / expected.least), w.ranks);
  }
  return sum;
}

double log_likelihood(const TrainingLog& log, const PredictedJob& expected, const Widths& w) {
  const Seconds measured = log.pace.median;
  const double off = measured / expected.iteration;
  double sum = log_two_sided(std::log(off), w.faster, w.slower);
  if (expected.has_parts) {
    for (const LoggedPart& part : log.parts)
      sum += log_part(part, expected.parts[static_cast<std::size_t>(part.part)], off, measured, w);
  }
  const auto bytes = log.allocated.value > 0 ? log.allocated : log.reserved;
  const auto predicted = log.allocated.value > 0 ? expected.allocated : expected.reserved;
  if (bytes.value > 0 && predicted.value > 0)
    sum += log_student(std::log(bytes / predicted), w.memory);
  const auto slow = static_cast<double>(log.pace.slow.size());
  return sum + slow * std::log(expected.slow_iterations) +
         (log.pace.counted - slow) * std::log(1 - expected.slow_iterations);
}

// Adds variants and their likelihoods to hypotheses, and turns them into probabilities.
class Suspects {
 public:
  Suspects(const TrainingLog& log, const Scenario& s, const PredictedJob& expected)
      : log_(log), s_(s), expected_(expected) {}

  // Of each variant its text, and what is predicted.
  void add(Culprit culprit, const auto& variants) {
    std::vector<double> logs;
    std::size_t likeliest = 0;
    for (const auto& [text, predicted] : variants) {
      logs.push_back(log_likelihood(log_, predicted, of_prediction(s_.training.error_band)));
      if (logs.size() > 1 && logs.back() <= logs[likeliest]) continue;
      likeliest = logs.size() - 1;
      culprit.told = text;
      culprit.predicted = predicted;
    }
    if (logs.empty()) return;
    double mean = 0;
    for (const double one : logs) mean += std::exp(one - logs[likeliest]);
    mean /= static_cast<double>(logs.size());
    const Pace& pace = log_.pace;
    const bool now_and_then = culprit.predicted.slow_iterations > expected_.slow_iterations;
    culprit.repaired = pace.median * (expected_.iteration / culprit.predicted.iteration);
    culprit.gained = (now_and_then ? pace.mean : pace.median) - culprit.repaired;
    put(std::move(culprit), logs[likeliest] + std::log(mean));
  }

  void add_none(double weight) {
    Culprit none{.name = "none-of-these",
                 .told = "none of the causes that this program knows",
                 .remedy =
                     "Profile one iteration (nsys, torch.profiler) and compare it with "
                     "`shardplan simulate --trace`.",
                 .because = "this list is short",
                 .prior = weight,
                 .predicted = expected_,
                 .repaired = log_.pace.median};
    put(std::move(none), log_likelihood(log_, expected_, of_none(s_.training.error_band)));
  }

  std::vector<Culprit> ranked() && {
    const double highest = *std::ranges::max_element(logs_);
    double sum = 0, priors = 0;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      list_[i].probability = std::exp(logs_[i] - highest);
      sum += list_[i].probability;
      priors += list_[i].prior;
    }
    for (Culprit& c : list_) {
      c.probability /= sum;
      c.prior /= priors;
    }
    std::ranges::stable_sort(list_, std::ranges::greater(), &Culprit::probability);
    return std::move(list_);
  }

 private:
  void put(Culprit culprit, double likelihood) {
    logs_.push_back(std::log(culprit.prior) + likelihood);
    list_.push_back(std::move(culprit));
  }

  const TrainingLog& log_;
  const Scenario& s_;
  const PredictedJob& expected_;
  std::vector<Culprit> list_;
  std::vector<double> logs_;  // of prior times likelihood
};

// What the log says of settings, with the batch that its stamps and rates tell: to a whole number
// of micro-batches.
std::vector<Saying> settings_of(const TrainingLog& log, const Scenario& s,
                                const ParallelPlan& plan) {
  std::vector<Saying> said = log.said;
  if (log.says("training.global_batch") != nullptr || !log.stamped) return said;
  const IterationSize size = iteration_size(s);
  double share = 0;  // of the scenario's batch that an iteration takes
  if (log.sequences_per_s > 0) share = log.sequences_per_s * log.pace.median.value / size.sequences;
  if (log.tokens_per_s_per_device > 0)
    share = log.tokens_per_s_per_device * log.pace.median.value / size.tokens_per_device;
  if (share <= 0) return said;
  constexpr double noise = 0.1;
  const auto step = static_cast<double>(plan.dp * plan.micro_batch);
  const double sequences = std::abs(share - 1) < noise
                               ? size.sequences
                               : step * std::max(1.0, std::round(share * size.sequences / step));
  said.push_back({"training.global_batch", fmt::format("{:.0f}", sequences)});
  return said;
}

// Megatron-LM says fp8 of each recipe of 8 bits.
bool says_same(const Saying& said, const std::string& configured) {
  if (said.value == configured) return true;
  return said.key == "training.precision" && said.value == "fp8" && configured == "mxfp8";
}

constexpr double none_weight = 0.06;
// Of the scenario being another than the job's, once the log says so.
constexpr double contradicted_weight = 3;

}  // namespace

IterationSize iteration_size(const Scenario& s) {
  const auto sequences = static_cast<double>(s.training.global_batch);
  return {sequences, sequences * static_cast<double>(s.training.tokens()) /
                         static_cast<double>(s.cluster.devices)};
}

std::vector<Contradiction> contradictions_of(const Scenario& s, const ParallelPlan& plan,
                                             const TrainingLog& log) {
  std::vector<Contradiction> list;
  const Job job{.cluster = s.cluster, .training = s.training, .plan = plan};
  for (const Saying& one : settings_of(log, s, plan)) {
    const auto configured = setting(job, one.key);
    if (configured && !says_same(one, *configured))
      list.push_back({one.key, *configured, one.value});
  }
  return list;
}

JobDiagnoser::JobDiagnoser(const Scenario& s, const ParallelPlan& plan)
    : scenario_(s), job_{.cluster = s.cluster, .training = s.training, .plan = plan} {
  Evaluator evaluator(s.model, s.cluster, s.training);
  estimate_ = evaluator.estimate(plan);
  expected_ = predicted(estimate_, evaluator, job_);
  for (auto& list : priced_) list.resize(hypotheses().size());
}

// Without those that break a rule of plans.
JobDiagnoser::PricedVariants JobDiagnoser::price(const std::vector<Variant>& variants,
                                                 bool data_in_forward) const {
  PricedVariants list;
  for (const Variant& v : variants) {
    auto p = predict(v.job, scenario_.model, data_in_forward);
    if (!p) continue;
    for (const JobPart part : {JobPart::forward, JobPart::backward}) {
      const auto i = static_cast<std::size_t>(part);  // the other nodes compute as they did
      if (v.job.one_node) p->parts[i].least = expected_.parts[i].least;
    }
    list.push_back({v.told, *p});
  }
  return list;
}

const JobDiagnoser::PricedVariants& JobDiagnoser::priced(std::size_t hypothesis,
                                                         bool data_in_forward) {
  auto& known = priced_[data_in_forward ? 1 : 0][hypothesis];
  if (!known) known = price(hypotheses()[hypothesis].variants(suspect()), data_in_forward);
  return *known;
}

JobDiagnosis JobDiagnoser::diagnose(const TrainingLog& log) {
  JobDiagnosis d;
  d.estimate = estimate_;
  d.expected = expected_;
  d.contradictions = contradictions_of(scenario_, job_.plan, log);
  Suspects suspects(log, scenario_, expected_);
  const bool data_in_forward = log.part(JobPart::data) != nullptr;

  Variant as_said{"", job_};
  for (const Contradiction& c : d.contradictions) {
    if (!set_setting(as_said.job, c.key, c.log)) continue;  // another machine, or no value
    as_said.told += fmt::format("{}{} {} by the log, {} by the scenario",
                                as_said.told.empty() ? "" : "; ", c.key, c.log, c.scenario);
  }
  if (!as_said.told.empty()) {
    suspects.add({.name = "other-settings",
                  .remedy = "Make the scenario the job's, or the job the scenario's.",
                  .because = "the log says so",
                  .prior = contradicted_weight},
                 price({as_said}, data_in_forward));
  }
  const auto said = settings_of(log, scenario_, job_.plan);
  for (std::size_t i = 0; i < hypotheses().size(); ++i) {
    const Hypothesis& h = hypotheses()[i];
    const auto at = std::ranges::find(said, h.key, &Saying::key);
    if (!h.key.empty() && at != said.end()) {  // the log settles it
      const auto configured = setting(job_, at->key);
      if (configured && says_same(*at, *configured) && !h.variants(suspect()).empty())
        d.ruled_out.push_back({std::string(h.name), at->key, at->value});
      continue;
    }
    suspects.add({.name = std::string(h.name),
                  .remedy = std::string(h.remedy),
                  .because = std::string(h.because),
                  .prior = h.weight},
                 priced(i, data_in_forward));
  }
  suspects.add_none(none_weight);
  d.culprits = std::move(suspects).ranked();
  return d;
}

JobDiagnosis diagnose_job(const Scenario& s, const ParallelPlan& plan, const TrainingLog& log) {
  return JobDiagnoser(s, plan).diagnose(log);
}

}  // namespace planner
