#include "planner/accuracy/rank_agreement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/scenario/residuals.hpp"

namespace planner {

namespace {

constexpr int least_plans = 3;
constexpr std::size_t least_pairs = 10;
// P(|t| <= 2.353) = 0.9 with 3 degrees of freedom.
constexpr double student_90 = 2.353;

struct PlanTime {
  std::string text;
  double predicted = 0;     // log
  double measured_sum = 0;  // of logs
  int runs = 0;
  double measured() const { return measured_sum / runs; }
};

struct Workload {
  std::string source, label;
  double pair_spread = 0;
  std::map<std::string, PlanTime> plans;
};

std::vector<Workload> workloads_of(const std::vector<ValidationRow>& rows) {
  std::map<std::pair<std::string, std::string>, Workload> found;
  for (const auto& row : rows) {
    if (!row.predicted_time() || row.facts.plan_assumed) continue;
    Workload& group = found[{row.source, row.facts.workload_key}];
    group.source = row.source;
    group.label = row.facts.workload;
    group.pair_spread = row.facts.pair_spread;
    PlanTime& time = group.plans[row.facts.plan];
    time.text = row.facts.plan_text;
    time.predicted = std::log(row.predicted);
    time.measured_sum += std::log(row.measured);
    ++time.runs;
  }
  std::vector<Workload> list;
  for (auto& [key, group] : found) {
    if (group.plans.size() > 1) list.push_back(std::move(group));
  }
  return list;
}

struct Pair {
  double predicted = 0, measured = 0;  // log of the second plan's time over the first's
  double weight = 0;
  double right() const {
    return predicted == 0 || measured == 0 ? 0.5 : (predicted > 0) == (measured > 0) ? 1 : 0;
  }
  double error() const { return std::abs(measured - predicted); }
};

std::vector<Pair> pairs_of(const Workload& group) {
  std::vector<Pair> pairs;
  const double weight = 2.0 / static_cast<double>(group.plans.size());
  for (auto a = group.plans.begin(); a != group.plans.end(); ++a) {
    for (auto b = std::next(a); b != group.plans.end(); ++b) {
      pairs.push_back({b->second.predicted - a->second.predicted,
                       b->second.measured() - a->second.measured(), weight});
    }
  }
  return pairs;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from;
    while (to + 1 < order.size() && values[order[to + 1]] == values[order[from]]) ++to;
    for (std::size_t i = from; i <= to; ++i) ranks[order[i]] = static_cast<double>(from + to) / 2;
    from = to + 1;
  }
  return ranks;
}

RankGroup ranked(const Workload& group, const std::vector<Pair>& pairs) {
  std::vector<double> predicted, measured;
  for (const auto& [plan, time] : group.plans) {
    predicted.push_back(time.predicted);
    measured.push_back(time.measured());
  }
  RankGroup g{group.source, group.label, static_cast<int>(predicted.size()),
              spearman(predicted, measured), static_cast<int>(pairs.size())};
  for (const Pair& pair : pairs) {
    g.pairs_right += pair.right();
    g.ratio_error += pair.error() / static_cast<double>(pairs.size());
  }
  return g;
}

// Among plans predicted equal, the one measured slowest.
FirstChoice first_choice(const Workload& group) {
  const PlanTime *first = nullptr, *fastest = nullptr;
  for (const auto& [plan, time] : group.plans) {
    if (first == nullptr || time.predicted < first->predicted ||
        (time.predicted == first->predicted && time.measured() > first->measured()))
      first = &time;
    if (fastest == nullptr || time.measured() < fastest->measured()) fastest = &time;
  }
  const auto loss_pct = [fastest](const PlanTime& time) {
    return 100 * std::expm1(time.measured() - fastest->measured());
  };
  FirstChoice choice{
      group.source,  group.label,     static_cast<int>(group.plans.size()), 0, first->text,
      fastest->text, loss_pct(*first)};
  for (const auto& [plan, time] : group.plans)
    choice.fastest += loss_pct(time) <= as_fast_pct ? 1 : 0;
  return choice;
}

constexpr std::array bin_edges{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99};

class Calibration {
 public:
  void add(const Pair& pair, double pair_spread) {
    if (pair.predicted == 0) return;  // no order is predicted
    const double p =
        costmodel::probability_faster(1, std::exp(std::abs(pair.predicted)), pair_spread);
    std::size_t bin = bin_edges.size() - 1;
    while (bin > 0 && p < bin_edges[bin]) --bin;
    ++pairs_[bin];
    probability_[bin] += p;
    right_[bin] += pair.right();
  }
  std::vector<ProbabilityBin> bins() const {
    std::vector<ProbabilityBin> list;
    for (std::size_t i = 0; i < bin_edges.size(); ++i) {
      if (pairs_[i] == 0) continue;
      const double to = i + 1 < bin_edges.size() ? bin_edges[i + 1] : 1;
      list.push_back(
          {bin_edges[i], to, pairs_[i], probability_[i] / pairs_[i], 100 * right_[i] / pairs_[i]});
    }
    return list;
  }

 private:
  std::array<int, bin_edges.size()> pairs_{};
  std::array<double, bin_edges.size()> probability_{}, right_{};
};

}  // namespace

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  SHARDPLAN_CHECK(a.size() == b.size());
  const auto ra = ranks_of(a), rb = ranks_of(b);
  const double middle = (static_cast<double>(a.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - middle) * (rb[i] - middle);
    aa += (ra[i] - middle) * (ra[i] - middle);
    bb += (rb[i] - middle) * (rb[i] - middle);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

ChoiceFigures figures_of(const std::vector<FirstChoice>& choices) {
  ChoiceFigures f;
  f.workloads = static_cast<int>(choices.size());
  if (choices.empty()) return f;
  for (const FirstChoice& c : choices) {
    f.right += c.right() ? 1 : 0;
    f.by_chance_pct += 100.0 * c.fastest / c.plans;
    f.mean_loss_pct += c.loss_pct;
    f.largest_loss_pct = std::max(f.largest_loss_pct, c.loss_pct);
  }
  f.right_pct = 100.0 * f.right / f.workloads;
  f.by_chance_pct /= f.workloads;
  f.mean_loss_pct /= f.workloads;
  return f;
}

RankAgreement rank_agreement(const std::vector<ValidationRow>& rows) {
  RankAgreement result;
  Calibration calibration;
  int plans = 0;
  double right = 0;
  for (const Workload& group : workloads_of(rows)) {
    const auto pairs = pairs_of(group);
    for (const Pair& pair : pairs) calibration.add(pair, group.pair_spread);
    result.choices.push_back(first_choice(group));
    if (group.plans.size() < least_plans) continue;
    result.groups.push_back(ranked(group, pairs));
    const RankGroup& g = result.groups.back();
    plans += g.plans;
    result.mean_spearman += g.plans * g.spearman;
    result.pairs += g.pairs;
    result.ratio_error_pct += 100 * g.plans * g.ratio_error;
    right += g.pairs_right;
  }
  result.calibration = calibration.bins();
  if (plans == 0) return result;
  result.mean_spearman /= plans;
  result.ratio_error_pct /= plans;
  result.pairs_right_pct = 100 * right / result.pairs;
  return result;
}

std::optional<double> pair_spread_of(const std::vector<ValidationRow>& rows) {
  std::vector<std::pair<double, double>> sizes;  // |residual|, weight
  double total = 0;
  for (const Workload& group : workloads_of(rows)) {
    for (const Pair& pair : pairs_of(group)) {
      sizes.emplace_back(pair.error(), pair.weight);
      total += pair.weight;
    }
  }
  if (sizes.size() < least_pairs) return {};
  std::ranges::sort(sizes);
  double below = 0;
  for (const auto& [size, weight] : sizes) {
    below += weight;
    if (below >= 0.9 * total) return std::max(size / student_90, 1e-6);
  }
  return {};
}

}  // namespace planner
