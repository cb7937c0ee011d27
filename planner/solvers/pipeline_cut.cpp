#include "planner/solvers/pipeline_cut.hpp"

#include <algorithm>
#include <utility>

namespace planner {

namespace {

class Cutter {
 public:
  // `roomy`: whatever fits.
  Cutter(const CutProblem& problem, bool roomy)
      : p_(problem),
        roomy_(roomy),
        m_(static_cast<double>(problem.micro_batches)),
        before_(table(Before{})),
        behind_(table(Behind{})) {
    before_[0][0].work = 0;
  }

  PipelineCut run() {
    reach();
    if (expired_) return {.expired = true};
    if (need_.front() > p_.stages) return {};
    spend(std::int64_t{p_.stages} * p_.layers);
    for (int rank = 0; rank < p_.stages && !expired_; ++rank) sum_up(rank);
    whole_ = before_[at(p_.stages)][at(p_.layers)].work;
    behind_[at(p_.stages)][at(p_.layers)] = {0, 0, p_.layers};
    for (int rank = p_.stages - 1; rank >= 0 && whole_ < infinity && !expired_; --rank) {
      for (int first = 0; first < p_.layers; ++first)
        if (before_[at(rank)][at(first)].work < infinity) look_behind(rank, first);
    }
    if (expired_) return {.expired = true};
    if (behind_[0][0].bound == infinity) return {};
    PipelineCut cut{.bound = behind_[0][0].bound};
    for (int widest = 2; p_.transfer > 0 && widest < p_.stages; widest *= 2)
      cut.bound = std::max(cut.bound, round_trips(widest));
    if (expired_) return {.expired = true};
    if (cut.bound > p_.limit) return {};
    for (int rank = 0, first = 0; rank < p_.stages; ++rank) {
      first = behind_[at(rank)][at(first)].end;
      cut.ends.push_back(first);
    }
    cut.least_work.resize(at(p_.stages));
    for (int rank = p_.stages, end = p_.layers; rank > 0; --rank) {
      cut.least_work[at(rank - 1)] = end;
      end = before_[at(rank)][at(end)].first;
    }
    return cut;
  }

 private:
  // The least work of the stages before a rank, up to a layer.
  struct Before {
    double work = infinity;
    int first = 0;  // of the last of them
  };
  // The best of the stages from a rank on, from a layer on.
  struct Behind {
    double bound = infinity;
    double uneven = infinity;  // the sum of squares of their times
    int end = 0;               // of the first of them
  };

  template <class Value>
  std::vector<std::vector<Value>> table(Value value) const {
    return {at(p_.stages + 1), std::vector<Value>(at(p_.layers + 1), value)};
  }

  void spend(std::int64_t stages) {
    looked_at_ += stages;
    constexpr std::int64_t often = 4096;
    if (looked_at_ < often || !p_.expired) return;
    expired_ = p_.expired(static_cast<std::uint64_t>(looked_at_)) || expired_;
    looked_at_ = 0;
  }

  bool is_quick(const CutStage* stage) const {
    return stage != nullptr && m_ * (stage->forward + stage->backward) <= p_.limit;
  }

  // The stage of these layers if it is quick enough, and fits on some rank; looked up once.
  const CutStage* usable(int first, int end) const {
    const CutStage* stage = p_.stage(first, end);
    const bool is = is_quick(stage) && (roomy_ || stage->most_in_flight >= 1);
    return is ? stage : nullptr;
  }

  // How far a stage may reach from each layer on, and so how many stages the layers from there on
  // need, and from which layer on so many stages suffice.
  void reach() {
    reach_.assign(at(p_.layers), 0);
    row_.assign(at(p_.layers), 0);
    for (int first = 0, end = 0; first < p_.layers && !expired_; ++first) {
      end = std::max(end, first);
      row_[at(first)] = stages_.size();
      for (int known = first + 1; known <= end; ++known) stages_.push_back(usable(first, known));
      for (const CutStage* stage = nullptr;
           end < p_.layers && (stage = usable(first, end + 1)) != nullptr; ++end)
        stages_.push_back(stage);
      reach_[at(first)] = end;
      if (end < p_.layers) reach_last(first, end);
      spend(end - first);
      expired_ = expired_ || stages_.size() > static_cast<std::size_t>(most_cut_cells);
    }
    if (expired_) return;
    need_.assign(at(p_.layers + 1), 0);
    suffice_.assign(at(p_.stages + 1), p_.layers);
    for (int first = p_.layers - 1; first >= 0; --first) {
      const int end = reach_[at(first)];
      need_[at(first)] = end > first ? std::min(need_[at(end)], p_.stages) + 1 : p_.stages + 1;
      for (int k = need_[at(first)]; k <= p_.stages; ++k) suffice_[at(k)] = first;
    }
  }

  // The last stage has the fewest micro-batches in flight: it may fit where no shorter one before
  // it does.
  void reach_last(int first, int end) {
    if (roomy_ || !is_quick(p_.stage(first, end + 1))) return;
    const CutStage* last = usable(first, p_.layers);
    if (last == nullptr) return;
    stages_.resize(stages_.size() + at(p_.layers - end - 1));
    stages_.push_back(last);
    reach_[at(first)] = p_.layers;
  }

  // Visits the stages of a rank from a layer on that leave the others a layer each and no more than
  // they can take, fit, and are quick enough.
  template <class Visit>
  void each_stage(int rank, int first, Visit visit) {
    if (expired_) return;
    const int others = p_.stages - rank - 1;
    const int most = others == 0 ? p_.layers : p_.layers - others;
    const int least = others == 0 ? p_.layers : std::max(first + 1, suffice_[at(others)]);
    const int last = std::min(most, reach_[at(first)]);
    spend(std::max(0, last + 1 - least));
    for (int end = least; end <= last; ++end) {
      const CutStage* stage = stages_[row_[at(first)] + at(end - first - 1)];
      if (stage == nullptr) continue;
      if (roomy_ || stage->most_in_flight >= forwards_first(rank)) visit(end, *stage);
    }
  }

  double forwards_first(int rank) const { return std::min<double>(p_.stages - rank, m_); }

  // The least sum of times of the stages up to a rank.
  void sum_up(int rank) {
    for (int first = 0; first < p_.layers; ++first) {
      const double sum = before_[at(rank)][at(first)].work;
      if (sum == infinity) continue;
      if (rank == 0 && first > 0) break;
      each_stage(rank, first, [&](int end, const CutStage& stage) {
        Before& known = before_[at(rank + 1)][at(end)];
        const double work = sum + stage.forward + stage.backward;
        if (work < known.work) known = {work, first};
      });
    }
  }

  double bound_of(int rank, int first, const CutStage& stage) const {
    const double own = stage.forward + stage.backward;
    const double waits = before_[at(rank)][at(first)].work + 2 * rank * p_.transfer + m_ * own;
    const double returns = whole_ + 2 * (p_.stages - 1) * p_.transfer + (m_ - 1) * own -
                           (forwards_first(rank) - 1) * stage.forward;
    return std::max(waits, returns);
  }

  void look_behind(int rank, int first) {
    Behind& best = behind_[at(rank)][at(first)];
    each_stage(rank, first, [&](int end, const CutStage& stage) {
      const Behind& others = behind_[at(rank + 1)][at(end)];
      if (others.bound == infinity) return;
      double bound = std::max(others.bound, bound_of(rank, first, stage));
      if (rank == 0) bound += stage.after;
      if (bound > p_.limit) return;
      const double own = stage.forward + stage.backward;
      const double uneven = others.uneven + own * own;
      const bool equal =
          bound <= best.bound * (1 + equal_share) && best.bound <= bound * (1 + equal_share);
      if (equal ? uneven < best.uneven : bound < best.bound)
        best = {std::min(best.bound, bound), uneven, end};
    });
  }

  // By first layer of ranks: the least bound of them and all behind them.
  using Bounds = std::vector<double>;

  // The least bound by round trips through at most `widest` ranks.
  double round_trips(int widest) {
    std::vector<int> widths;  // rank 0 stands alone: what follows the pipeline is its own
    for (int rank = 0; rank < p_.stages; rank += widths.back())
      widths.push_back(rank == 0 ? 1 : width_at(rank, widest));
    Bounds bounds(at(p_.layers + 1), infinity);
    bounds.back() = 0;
    int rank = p_.stages;
    for (auto width = widths.rbegin(); width != widths.rend() && !expired_; ++width) {
      rank -= *width;
      bounds = *width == 1 ? alone(rank, bounds) : together(rank, *width, bounds);
    }
    return bounds.front();
  }

  // The most ranks from this one on whose round trips meet the last micro-batch.
  int width_at(int rank, int widest) const {
    const std::int64_t trips = p_.micro_batches - p_.stages + rank - 1;
    int width = std::min(widest, p_.stages - rank);
    while (width > 1 && (trips < 0 || trips % width != 0)) --width;
    return width;
  }

  Bounds alone(int rank, const Bounds& behind) {
    Bounds bounds(behind.size(), infinity);
    for (int first = 0; first < (rank == 0 ? 1 : p_.layers); ++first) {
      if (before_[at(rank)][at(first)].work == infinity) continue;
      double& best = bounds[at(first)];
      each_stage(rank, first, [&](int end, const CutStage& stage) {
        const double bound = std::max(behind[at(end)], bound_of(rank, first, stage));
        best = std::min(best, bound + (rank == 0 ? stage.after : 0));
      });
    }
    return bounds;
  }

  Bounds together(int rank, int width, const Bounds& behind) {
    Bounds bounds(behind.size(), infinity);
    const double first_forwards = std::min<double>(p_.stages - rank - width + 1, m_);
    const double trips = (m_ - first_forwards) / width + 1;
    const double fixed = 2 * p_.transfer * (rank + trips * (width - 1));
    for (int first = 0; first < p_.layers; ++first) {
      const double before = before_[at(rank)][at(first)].work;
      if (before == infinity) continue;
      spend(p_.layers - first);
      for (int end = first + width; end <= p_.layers; ++end) {
        const double work = before_[at(rank + width)][at(end)].work - before;
        const double bound = before + fixed + (m_ + width - 1) / width * work;
        bounds[at(first)] = std::min(bounds[at(first)], std::max(behind[at(end)], bound));
      }
    }
    return bounds;
  }

  const CutProblem& p_;
  bool roomy_;
  double m_;
  bool expired_ = false;
  std::int64_t looked_at_ = 0;               // stages, since this was last told
  std::vector<const CutStage*> stages_;      // by first layer and end
  std::vector<std::size_t> row_;             // where those of a first layer begin
  std::vector<int> reach_, need_;            // by first layer
  std::vector<int> suffice_;                 // by number of stages
  double whole_ = infinity;                  // the least sum of times of all stages
  std::vector<std::vector<Before>> before_;  // by rank and first layer
  std::vector<std::vector<Behind>> behind_;
};

}  // namespace

// The layers that a rank may begin with, rank by rank. A stage that begins later may end later.
bool some_cut_fits(const CutProblem& p) {
  std::vector<char> begins(at(p.layers + 1), 0);
  begins.front() = 1;
  for (int rank = 0; rank < p.stages; ++rank) {
    const auto in_flight = std::min<std::int64_t>(p.stages - rank, p.micro_batches);
    const auto fits = [&](int first, int end) {
      const CutStage* stage = p.stage(first, end);
      return stage != nullptr && stage->most_in_flight >= in_flight;
    };
    const int others = p.stages - rank - 1;
    std::vector<char> next(at(p.layers + 1), 0);
    for (int first = 0, end = 0; first < p.layers - others; ++first) {
      if (begins[at(first)] == 0) continue;
      if (others == 0 && fits(first, p.layers)) return true;
      for (end = std::max(end, first); end < p.layers - others && fits(first, end + 1);)
        next[at(++end)] = 1;
    }
    begins = std::move(next);
  }
  return false;
}

PipelineCut best_cut(const CutProblem& problem) {
  if (problem.expired && problem.expired(0)) return {.expired = true};
  if (std::int64_t{problem.stages} * problem.layers > most_cut_cells) return {.expired = true};
  PipelineCut cut = Cutter(problem, problem.whatever_fits).run();
  if (!cut.ends.empty() || cut.expired || problem.whatever_fits || problem.some_is_quick)
    return cut;
  const PipelineCut roomy = Cutter(problem, true).run();
  return {.too_slow = roomy.ends.empty() && !roomy.expired, .expired = roomy.expired};
}

}  // namespace planner
