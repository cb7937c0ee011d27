#include "planner/accuracy/peak_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "costmodel/base/student_t.hpp"
#include "planner/accuracy/residual_fit.hpp"

namespace planner {

using namespace costmodel;

namespace {

using SourceNames = std::set<std::string>;

// A stack's own distribution, mixed with that of all stacks as if so many sources more had measured
// it: those that left-out sources are likeliest by, of 1, 2, 4 and 8.
constexpr double prior_stack_sources = 4;
constexpr double least_peak_scale = 1e-3;

struct PublishedPeak {
  std::string source, stack;
  double residual = 0;  // log(measured / predicted)
};

// A run of which it is known whether it fitted.
struct KnownOutcome {
  std::string source, stack;
  Bytes peak, capacity;  // predicted
  bool ran = true;
};

struct WeightedPeak {
  double value, weight;
};

// Median and scale at the greatest likelihood, by expectation and maximisation (Lange, Little and
// Taylor 1989, "Robust statistical modeling using the t distribution").
std::pair<double, double> student_fit(const std::vector<WeightedPeak>& values) {
  constexpr double freedom = 3;
  constexpr int most_steps = 200;
  std::vector<std::pair<double, double>> pairs;
  double all = 0, scale = 0;
  for (const WeightedPeak& v : values) {
    pairs.emplace_back(v.value, v.weight);
    all += v.weight;
  }
  double middle = weighted_quantile(pairs, 0.5);
  for (const WeightedPeak& v : values) scale += v.weight * std::abs(v.value - middle);
  scale = std::max(least_peak_scale, scale / all);
  for (int step = 0; step < most_steps; ++step) {
    double sum = 0, weights = 0, squares = 0;
    for (const WeightedPeak& v : values) {
      const double t = (v.value - middle) / scale;
      const double weight = v.weight * (freedom + 1) / (freedom + t * t);
      sum += weight * v.value;
      weights += weight;
      squares += weight * (v.value - middle) * (v.value - middle);
    }
    const double next = sum / weights, wide = std::max(least_peak_scale, std::sqrt(squares / all));
    const bool settled = std::abs(next - middle) < 1e-9 && std::abs(wide - scale) < 1e-9;
    middle = next;
    scale = wide;
    if (settled) break;
  }
  return {middle, scale};
}

class KnownPeaks {
 public:
  explicit KnownPeaks(const std::vector<ValidationRow>& rows) {
    for (const ValidationRow& row : rows) {
      if (!row.counts()) continue;
      const std::string& stack = row.facts.stack;
      if (row.quantity == "peak_memory_bytes") {
        peaks_.push_back({row.source, stack, std::log(row.measured / row.predicted)});
        peaked_.insert(row.source);
      } else if (row.quantity == "fits" && row.peak > 0) {
        known_.push_back(
            {row.source, stack, Bytes(row.peak), Bytes(row.capacity), row.measured > 0});
        sources_.insert(row.source);
      }
    }
    sources_.insert(peaked_.begin(), peaked_.end());
  }

  const std::vector<KnownOutcome>& known() const { return known_; }

  // Without the sources `left`. What only sources without peaks are left out of is known already.
  const std::optional<PeakResiduals>& spreads(SourceNames left) {
    std::erase_if(left, [this](const std::string& source) { return !peaked_.contains(source); });
    const auto at = fitted_.find(left);
    return at != fitted_.end() ? at->second : fitted_.emplace(left, spread(left)).first->second;
  }

  // The same with the factor for stacks that are not among them.
  std::optional<PeakResiduals> complete(const SourceNames& left) {
    std::optional<PeakResiduals> peaks = spreads(left);
    if (peaks) peaks->unmeasured = unmeasured(left);
    return peaks;
  }

 private:
  std::optional<PeakResiduals> spread(const SourceNames& left) const {
    std::map<std::string, int> runs;
    for (const PublishedPeak& peak : peaks_)
      if (!left.contains(peak.source)) ++runs[peak.source];
    if (runs.empty()) return {};
    std::vector<WeightedPeak> all;
    std::map<std::string, std::vector<WeightedPeak>> by_stack;
    PeakResiduals result;
    std::map<std::string, SourceNames> sources;
    for (const PublishedPeak& peak : peaks_) {
      if (left.contains(peak.source)) continue;
      all.push_back({peak.residual, 1.0 / runs.at(peak.source)});
      by_stack[peak.stack].push_back(all.back());
      ++result.stacks[peak.stack].count.runs;
      sources[peak.stack].insert(peak.source);
    }
    result.all.count = {static_cast<int>(all.size()), static_cast<int>(runs.size())};
    std::tie(result.all.middle, result.all.scale) = student_fit(all);
    for (auto& [stack, own] : result.stacks) {
      own.count.sources = static_cast<int>(sources.at(stack).size());
      const auto [middle, scale] = student_fit(by_stack.at(stack));
      double weight = 0;
      for (const WeightedPeak& v : by_stack.at(stack)) weight += v.weight;
      const auto mixed = [weight](double its, double of_all) {
        return (weight * its + prior_stack_sources * of_all) / (weight + prior_stack_sources);
      };
      own.middle = mixed(middle, result.all.middle);
      own.scale = std::sqrt(mixed(scale * scale, result.all.scale * result.all.scale));
    }
    return result;
  }

  // What a left-out run is off by, of a stack that no other source measured, and the scale that
  // others' peaks give it.
  struct Term {
    double distance = 0, scale = 1;
    enum { peak, ran, misfit } is = peak;
    double log_likelihood(double factor) const {
      constexpr double least = 1e-6;  // no outcome is impossible
      const double t = distance / (scale * factor);
      if (is == peak) return costmodel::student_t3_log_density(t) - std::log(scale * factor);
      return std::log(std::max(least, costmodel::student_t3(is == ran ? t : -t)));
    }
  };
  using Terms = std::vector<Term>;

  // By peaks where the source states some, else by whether its runs ran.
  const Terms& terms(const std::string& source, SourceNames others) {
    others.insert(source);
    std::erase_if(others, [this](const std::string& name) { return !peaked_.contains(name); });
    const auto placed = terms_.try_emplace({source, others});
    Terms& own = placed.first->second;
    const auto& peaks = spreads(others);
    if (!placed.second || !peaks) return own;
    const auto add = [&](const std::string& of, const std::string& stack, double log, auto is) {
      if (of != source || peaks->stacks.contains(stack)) return;
      own.push_back({log - peaks->all.middle, peaks->all.scale, is});
    };
    if (peaked_.contains(source)) {
      for (const PublishedPeak& peak : peaks_)
        add(peak.source, peak.stack, peak.residual, Term::peak);
    } else {
      for (const KnownOutcome& run : known_) {
        add(run.source, run.stack, std::log(run.capacity / run.peak),
            run.ran ? Term::ran : Term::misfit);
      }
    }
    return own;
  }

  // The sum over sources of the mean log likelihood of their runs, each left out.
  double likelihood(double factor, const SourceNames& left) {
    double sum = 0;
    for (const std::string& source : sources_) {
      if (left.contains(source)) continue;
      const Terms& own = terms(source, left);
      double likelihood = 0;
      for (const Term& term : own) likelihood += term.log_likelihood(factor);
      if (!own.empty()) sum += likelihood / static_cast<double>(own.size());
    }
    return sum;
  }

  double unmeasured(const SourceNames& left) {
    constexpr double most = 4, step = 0.1;
    double best = 1, likeliest = likelihood(1, left);
    for (int i = 1; 1 + i * step <= most; ++i) {
      const double factor = 1 + i * step, own = likelihood(factor, left);
      if (own <= likeliest) continue;
      likeliest = own;
      best = factor;
    }
    return best;
  }

  std::vector<PublishedPeak> peaks_;
  std::vector<KnownOutcome> known_;
  SourceNames peaked_, sources_;
  std::map<SourceNames, std::optional<PeakResiduals>> fitted_;
  std::map<std::pair<std::string, SourceNames>, Terms> terms_;
};

}  // namespace

std::optional<PeakResiduals> fit_peaks(const std::vector<ValidationRow>& rows) {
  return KnownPeaks(rows).complete({});
}

std::vector<Outcome> left_out_chances(const std::vector<ValidationRow>& rows) {
  KnownPeaks evidence(rows);
  std::map<std::string, std::optional<PeakResiduals>> by_source;
  std::vector<Outcome> outcomes;
  for (const KnownOutcome& run : evidence.known()) {
    if (!by_source.contains(run.source)) by_source[run.source] = evidence.complete({run.source});
    const auto& peaks = by_source.at(run.source);
    const PeakErrors errors = peaks ? peak_errors_of(*peaks, run.stack) : PeakErrors{};
    outcomes.push_back(
        {costmodel::fits_probability(run.peak, run.capacity, errors), run.ran, run.source});
  }
  return outcomes;
}

std::vector<ChanceBin> chance_bins(const std::vector<Outcome>& outcomes) {
  constexpr std::array limits{0.0, 0.1, 0.5, 0.8, 0.95, 1.0};
  std::vector<ChanceBin> bins;
  for (std::size_t i = 0; i + 1 < limits.size(); ++i) {
    ChanceBin bin{limits[i], limits[i + 1]};
    const bool last = i + 2 == limits.size();
    for (const Outcome& run : outcomes) {
      if (run.chance < bin.from || (run.chance >= bin.to && !last)) continue;
      ++bin.runs;
      bin.mean_chance += run.chance;
      bin.ran += run.ran ? 1 : 0;
    }
    if (bin.runs > 0) {
      bin.mean_chance /= bin.runs;
      bin.ran /= bin.runs;
    }
    bins.push_back(bin);
  }
  return bins;
}

BrierScore brier_score(const std::vector<Outcome>& outcomes) {
  BrierScore score;
  std::map<std::string, std::pair<double, int>> sources;
  for (const Outcome& run : outcomes) {
    const double miss = run.chance - (run.ran ? 1 : 0), square = miss * miss;
    ++score.runs;
    score.all += square;
    auto& [sum, runs] = sources[run.source];
    sum += square;
    ++runs;
    if (run.ran) continue;
    ++score.out_of_memory;
    score.of_misfits += square;
  }
  if (score.runs == 0) return score;
  for (const auto& [source, own] : sources) score.over_sources += own.first / own.second;
  score.over_sources /= static_cast<double>(sources.size());
  score.all /= score.runs;
  if (score.out_of_memory > 0) score.of_misfits /= score.out_of_memory;
  return score;
}

}  // namespace planner
