#include "planner/diagnosis/job_diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"

namespace planner {

using namespace costmodel;

// Adds variants and their likelihoods to hypotheses, and turns them into probabilities.
class Suspects {
 public:
  Suspects(const TrainingLog& log, const Known& known, const PredictedJob& expected)
      : log_(log), known_(known), expected_(expected) {}

  // Of each variant its text, and what is predicted. `h`: whose series and lines are expected.
  void add(Culprit culprit, const Hypothesis& h, const std::vector<PricedVariant>& variants) {
    std::vector<double> logs;
    std::size_t likeliest = 0;
    for (const PricedVariant& v : variants) {
      logs.push_back(log_time_and_memory(log_, v.job, known_) +
                     log_series_and_lines(log_, h, v.job, known_));
      if (logs.size() > 1 && logs.back() <= logs[likeliest]) continue;
      likeliest = logs.size() - 1;
      culprit.what = v.text;
      culprit.predicted = v.job;
    }
    if (logs.empty()) return;
    // Sizes of a fault are one half of what is likely, its other forms the other half.
    std::array<double, 2> sum{}, number{};
    for (std::size_t i = 0; i < logs.size(); ++i) {
      sum[variants[i].sized ? 1 : 0] += std::exp(logs[i] - logs[likeliest]);
      ++number[variants[i].sized ? 1 : 0];
    }
    double mean = 0;
    for (const std::size_t i : {0, 1})
      if (number[i] > 0) mean += sum[i] / number[i] / (number[1 - i] > 0 ? 2 : 1);
    const Pace& pace = log_.pace;
    const bool now_and_then = culprit.predicted.slow_iterations > expected_.slow_iterations;
    const Seconds now = culprit.predicted.grows ? pace.late : pace.median;
    culprit.repaired = culprit.predicted.grows
                           ? costmodel::min(pace.early, expected_.iteration)
                           : now * (expected_.iteration / culprit.predicted.iteration);
    culprit.gained = (now_and_then ? pace.mean : now) - culprit.repaired;
    put(std::move(culprit), logs[likeliest] + std::log(mean), &h);
    list_.back().sizes = std::log(mean);
  }

  void add_none(double weight) {
    Culprit none{.name = "none-of-these",
                 .what = "none of the causes that this program knows",
                 .remedy =
                     "Profile one iteration (nsys, torch.profiler) and compare it with "
                     "`shardplan simulate --trace`.",
                 .because = "this list is short",
                 .prior = weight,
                 .predicted = expected_,
                 .repaired = log_.pace.median};
    put(std::move(none), log_of_none(log_, expected_, known_), nullptr);
  }

  // The likeliest two faults at once, if a pair explains what none alone does.
  void add_pair() {
    double priors = 0;
    for (const Entry& e : list_) priors += e.culprit.prior;
    std::optional<Entry> best;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      for (std::size_t j = i + 1; j < list_.size(); ++j) {
        auto pair = paired(list_[i], list_[j], priors);
        if (pair && (!best || pair->likelihood > best->likelihood)) best = std::move(pair);
      }
    }
    if (best) list_.push_back(std::move(*best));
  }

  std::vector<Culprit> ranked() && {
    const double highest = std::ranges::max_element(list_, {}, &Entry::likelihood)->likelihood;
    double sum = 0, priors = 0;
    for (Entry& e : list_) {
      e.culprit.probability = std::exp(e.likelihood - highest);
      sum += e.culprit.probability;
      priors += e.culprit.prior;
    }
    std::vector<Culprit> all;
    for (Entry& e : list_) {
      e.culprit.probability /= sum;
      e.culprit.prior /= priors;
      all.push_back(std::move(e.culprit));
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &Culprit::probability);
    return all;
  }

 private:
  struct Entry {
    Culprit culprit;
    double likelihood;  // logarithm of prior times likelihood
    const Hypothesis* hypothesis;
    double sizes = 0;  // logarithm of the mean likelihood of its variants over the likeliest's
  };

  void put(Culprit culprit, double likelihood, const Hypothesis* h) {
    const double weighed = std::log(culprit.prior) + likelihood;
    list_.push_back({std::move(culprit), weighed, h, 0});
  }

  // Both faults take time, or fill memory, or pause: a pair with one that changes nothing is no
  // pair.
  bool changes(const PredictedJob& p) const {
    constexpr double visibly = 0.05;
    return p.iteration > expected_.iteration * (1 + visibly) || p.grows ||
           p.slow_iterations > expected_.slow_iterations;
  }

  std::optional<Entry> paired(const Entry& a, const Entry& b, double priors) const {
    if (a.hypothesis == nullptr || b.hypothesis == nullptr) return {};
    const PredictedJob &x = a.culprit.predicted, &y = b.culprit.predicted;
    if (!changes(x) || !changes(y)) return {};
    if ((x.grows || y.grows) && log_.pace.shape != SeriesShape::growing) return {};
    const bool first = x.iteration > y.iteration;
    const Culprit &more = first ? a.culprit : b.culprit, &less = first ? b.culprit : a.culprit;
    Culprit c{.name = more.name + "+" + less.name,
              .what = more.what + "; and " + less.what,
              .remedy = more.remedy + " " + less.remedy,
              .because = "two at once",
              .test = more.test + "; " + less.test,
              .prior = a.culprit.prior * b.culprit.prior / priors,
              .predicted = both(x, y, expected_)};
    const auto lines = [&](const Hypothesis& h) {
      return log_series_and_lines(log_, h, c.predicted, known_);
    };
    const double likelihood = std::log(c.prior) + log_time_and_memory(log_, c.predicted, known_) +
                              a.sizes + b.sizes +
                              std::max(lines(*a.hypothesis), lines(*b.hypothesis));
    c.repaired = log_.pace.median * (expected_.iteration / c.predicted.iteration);
    c.gained = log_.pace.median - c.repaired;
    return Entry{std::move(c), likelihood, nullptr, 0};
  }

  const TrainingLog& log_;
  const Known& known_;
  const PredictedJob& expected_;
  std::vector<Entry> list_;
};

namespace {

// What the log has of settings, with the batch that its stamps and rates tell: to a whole number
// of micro-batches.
std::vector<LoggedSetting> settings_of(const TrainingLog& log, const Scenario& s,
                                       const ParallelPlan& plan) {
  std::vector<LoggedSetting> settings = log.settings;
  if (log.stated("training.global_batch") != nullptr || !log.stamped) return settings;
  const IterationSize size = iteration_size(s);
  double share = 0;  // of the scenario's batch that an iteration takes
  if (log.sequences_each > 0) share = log.sequences_each / size.sequences;
  if (log.tokens_each_per_device > 0) share = log.tokens_each_per_device / size.tokens_per_device;
  if (share <= 0) return settings;
  constexpr double noise = 0.1;
  const double batch = share * size.sequences;
  const auto full = static_cast<double>(plan.dp * plan.micro_batch);
  const double step = batch < full ? static_cast<double>(plan.dp) : full;
  const double sequences =
      std::abs(share - 1) < noise ? size.sequences : step * std::max(1.0, std::round(batch / step));
  settings.push_back({"training.global_batch", fmt::format("{:.0f}", sequences)});
  return settings;
}

// Megatron-LM says fp8 of each recipe of 8 bits.
bool same_value(const LoggedSetting& logged, const std::string& configured) {
  if (logged.value == configured) return true;
  return logged.key == "training.precision" && logged.value == "fp8" && configured == "mxfp8";
}

// A setting that has a hypothesis of its own goes by its name; a batch by that of all settings, as
// more than one may make it.
std::string name_of(const std::vector<Contradiction>& contradictions) {
  if (contradictions.size() == 1 && contradictions.front().key != "plan.micro_batch" &&
      contradictions.front().key != "training.global_batch") {
    for (const Hypothesis& h : hypotheses())
      if (h.key == contradictions.front().key) return std::string(h.name);
  }
  return "other-settings";
}

// The faults that the log makes as likely as the likeliest one, whatever they were before it.
std::vector<std::string> inseparable_of(const std::vector<Culprit>& culprits) {
  constexpr double same = 3;      // times as likely: less than any timer or line that settles it
  constexpr double least = 0.05;  // of the likeliest's probability
  const auto is_fault = [](const Culprit& c) {
    return c.name != "as-configured" && c.name != "none-of-these" && c.name != "other-settings" &&
           c.name.find('+') == std::string::npos;
  };
  const auto first =
      std::ranges::find_if(culprits, [](const Culprit& c) { return c.name != "as-configured"; });
  if (first == culprits.end() || !is_fault(*first)) return {};
  std::vector<std::string> names;
  for (const Culprit& c : culprits) {
    const double times = (c.probability / c.prior) / (first->probability / first->prior);
    const bool separable = times > same || times < 1 / same;
    if (is_fault(c) && !separable && c.probability > least * first->probability)
      names.push_back(c.name);
  }
  return names.size() > 1 ? names : std::vector<std::string>{};
}

constexpr double none_weight = 0.02;
// Of the scenario being another than the job's, once the log says so.
constexpr double contradicted_weight = 3;

LogContent content_of(const TrainingLog& log) {
  return {.data_in_forward = log.part(JobPart::data) != nullptr,
          .reserved = log.allocated.value <= 0 && log.reserved.value > 0};
}

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
  for (const LoggedSetting& one : settings_of(log, s, plan)) {
    const auto configured = setting(job, one.key);
    if (configured && !same_value(one, *configured))
      list.push_back({one.key, *configured, one.value});
  }
  return list;
}

// Whether the job with other settings takes about the time that was measured.
bool JobDiagnoser::explains(const std::vector<PricedVariant>& other, const TrainingLog& log) const {
  if (other.empty() || log.pace.median.value <= 0) return false;
  const double off = log.pace.median / other.front().job.iteration;
  const ErrorBand& band = scenario_.training.error_band;
  if (off <= band.low || off >= band.high) return false;
  constexpr double same_memory = 1.4;
  const bool allocated = log.allocated.value > 0;
  const Bytes held = allocated ? log.allocated : log.reserved;
  const Bytes expected = allocated ? other.front().job.allocated : other.front().job.reserved;
  return held.value <= 0 || expected.value <= 0 ||
         std::abs(std::log(held / expected)) < std::log(same_memory);
}

JobDiagnoser::JobDiagnoser(const Scenario& s, const ParallelPlan& plan)
    : scenario_(s), job_{.cluster = s.cluster, .training = s.training, .plan = plan} {
  Evaluator evaluator(s.model, s.cluster, s.training);
  estimate_ = evaluator.estimate(plan);
  expected_ = predicted(estimate_, evaluator, job_, {.reserved = true});
  for (auto& list : priced_) list.resize(hypotheses().size());
}

// Without those that break a rule of plans, and with sizes between those that are priced.
std::vector<PricedVariant> JobDiagnoser::price(const std::vector<Variant>& variants,
                                               LogContent log) const {
  std::vector<PricedVariant> list;
  const Variant* last = nullptr;
  for (const Variant& v : variants) {
    auto p = predict(v.job, scenario_.model, log);
    if (!p) continue;
    for (const JobPart part : {JobPart::forward, JobPart::backward}) {
      const auto i = static_cast<std::size_t>(part);  // the other nodes compute as they did
      if (v.job.one_node) p->parts[i].least = expected_.parts[i].least;
    }
    if (last != nullptr && last->form != nullptr && last->form == v.form) {
      const PredictedJob from = list.back().job;
      for (const double share : {0.25, 0.5, 0.75}) {
        const double size = last->size * std::pow(v.size / last->size, share);
        list.push_back({fmt::format(fmt::runtime(v.form), size), between(from, *p, share), true});
      }
    }
    list.push_back({v.text, *p, v.form != nullptr});
    last = &v;
  }
  return list;
}

const std::vector<PricedVariant>& JobDiagnoser::priced(std::size_t hypothesis, LogContent log) {
  auto& known = priced_[log.index()][hypothesis];
  if (!known) known = price(hypotheses()[hypothesis].variants(suspect()), log);
  return *known;
}

// The job with the settings that the log states; its text is empty where it states no others.
Variant JobDiagnoser::as_logged(const std::vector<Contradiction>& contradictions) const {
  Variant changed{"", job_};
  for (const Contradiction& c : contradictions) {
    if (!set_setting(changed.job, c.key, c.log)) continue;  // another machine, or no value
    changed.text += fmt::format("{}{} {} by the log, {} by the scenario",
                                changed.text.empty() ? "" : "; ", c.key, c.log, c.scenario);
  }
  return changed;
}

// Whether the log's settings, or the TF32 in which a job of fp32 may run, give the time measured.
bool JobDiagnoser::explained(const std::vector<PricedVariant>& as_logged, const TrainingLog& log) {
  if (explains(as_logged, log)) return true;
  if (scenario_.training.precision != Precision::fp32) return false;
  const auto at = std::ranges::find(hypotheses(), "full-precision", &Hypothesis::name);
  for (const PricedVariant& v :
       priced(static_cast<std::size_t>(at - hypotheses().begin()), content_of(log))) {
    // Some of the products may, others not.
    if (log.pace.median > v.job.iteration * scenario_.training.error_band.low &&
        log.pace.median < expected_.iteration) {
      return true;
    }
  }
  return false;
}

// All hypotheses but those that the log settles.
void JobDiagnoser::add_hypotheses(const TrainingLog& log, Suspects& suspects, JobDiagnosis& d) {
  const auto settings = settings_of(log, scenario_, job_.plan);
  for (std::size_t i = 0; i < hypotheses().size(); ++i) {
    const Hypothesis& h = hypotheses()[i];
    const auto at = std::ranges::find(settings, h.key, &LoggedSetting::key);
    if (!h.key.empty() && at != settings.end()) {
      const auto configured = setting(job_, at->key);
      if (configured && same_value(*at, *configured) && !h.variants(suspect()).empty())
        d.ruled_out.push_back({std::string(h.name), at->key, at->value});
      continue;
    }
    // As it is configured it takes no longer than its interval, whatever else is unlikelier.
    if (i == 0 && log.pace.median > estimate_.interval.high) continue;
    suspects.add({.name = std::string(h.name),
                  .remedy = std::string(h.remedy),
                  .because = std::string(h.because),
                  .test = std::string(h.test),
                  .prior = h.weight},
                 h, priced(i, content_of(log)));
  }
}

JobDiagnosis JobDiagnoser::diagnose(const TrainingLog& log) {
  JobDiagnosis d;
  d.estimate = estimate_;
  d.expected = expected_;
  d.contradictions = contradictions_of(scenario_, job_.plan, log);
  const Known known{scenario_.training.error_band, estimate_.capacity, estimate_.peak, expected_};
  Suspects suspects(log, known, expected_);
  const Variant logged = as_logged(d.contradictions);
  std::vector<PricedVariant> other;
  if (!logged.text.empty()) {
    other = price({logged}, content_of(log));
    suspects.add({.name = name_of(d.contradictions),
                  .remedy = "Make the scenario the job's, or the job the scenario's.",
                  .because = "the log states it",
                  .prior = contradicted_weight},
                 hypotheses().front(), other);
  }
  d.refusals = refusals_of(scenario_, estimate_, log, d.contradictions, explained(other, log));
  add_hypotheses(log, suspects, d);
  suspects.add_pair();
  suspects.add_none(none_weight);
  d.culprits = std::move(suspects).ranked();
  d.inseparable = inseparable_of(d.culprits);
  constexpr double clear = 0.5, far = 1.5;
  const Culprit& first = d.culprits.front();
  const bool off =
      log.pace.median > estimate_.interval.high * far || log.pace.median < estimate_.interval.low;
  if (d.refusals.empty() && first.name == "none-of-these" && first.probability > clear && off)
    d.refusals.push_back(unexplained(estimate_, log));
  if (d.refusals.empty()) {
    if (auto refusal = other_memory(log, first.predicted, first.name))
      d.refusals.push_back(std::move(*refusal));
  }
  return d;
}

JobDiagnosis diagnose_job(const Scenario& s, const ParallelPlan& plan, const TrainingLog& log) {
  return JobDiagnoser(s, plan).diagnose(log);
}

}  // namespace planner
