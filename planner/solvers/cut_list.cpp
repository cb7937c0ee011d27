#include "planner/solvers/cut_list.hpp"

#include <algorithm>
#include <utility>

namespace planner {

namespace {

constexpr int most_looked_at = 4000;  // stages

class Lister {
 public:
  Lister(const CutProblem& problem, std::size_t most)
      : p_(problem),
        m_(static_cast<double>(problem.micro_batches)),
        most_(most),
        need_(at(problem.layers + 1), problem.stages + 1) {}

  std::optional<std::vector<std::vector<int>>> run() {
    count_needed();
    from(0, 0);
    if (too_many_) return {};
    return std::move(cuts_);
  }

 private:
  struct Chosen {
    int end;
    const CutStage* stage;
    double before;  // the work of the stages before it
  };

  static double own(const CutStage& stage) { return stage.forward + stage.backward; }
  bool quick(const CutStage* stage) const {
    return stage != nullptr && m_ * own(*stage) <= p_.limit;
  }
  int forwards_first(int rank) const {
    return static_cast<int>(std::min<std::int64_t>(p_.stages - rank, p_.micro_batches));
  }

  // The stages that the layers from each on need at least.
  void count_needed() {
    need_[at(p_.layers)] = 0;
    for (int first = p_.layers - 1, end = p_.layers; first >= 0; --first) {
      while (end > first && !quick(p_.stage(first, end))) --end;
      if (end > first) need_[at(first)] = std::min(need_[at(end)], p_.stages) + 1;
      if (end == first) end = first + 1;  // not even this layer alone
    }
  }

  // Goes through the stages of a rank from a layer on, the shorter ones first.
  void from(int rank, int first) {
    const int others = p_.stages - rank - 1;
    const double before = rank == 0 ? 0 : chosen_.back().before + own(*chosen_.back().stage);
    for (int end = others == 0 ? p_.layers : first + 1; end <= p_.layers - others; ++end) {
      if (need_[at(end)] > others) continue;
      const CutStage* stage = p_.stage(first, end);
      too_many_ = too_many_ || ++looked_at_ > most_looked_at;
      if (too_many_ || !quick(stage)) return;
      if (rank == 0) after_ = stage->after;
      if (before + 2 * rank * p_.transfer + m_ * own(*stage) + after_ > p_.limit) return;
      if (stage->most_in_flight < forwards_first(rank)) continue;
      chosen_.push_back({end, stage, before});
      if (others > 0) {
        from(rank + 1, end);
      } else {
        keep();
      }
      chosen_.pop_back();
    }
  }

  // Ranks have waited for their first backward too.
  void keep() {
    const double round_trip =
        chosen_.back().before + own(*chosen_.back().stage) + 2 * (p_.stages - 1) * p_.transfer;
    std::vector<int> ends;
    for (const auto& [end, stage, before] : chosen_) {
      const int rank = static_cast<int>(ends.size());
      const double bound = round_trip + (m_ - 1) * own(*stage) -
                           (forwards_first(rank) - 1) * stage->forward + after_;
      if (bound > p_.limit) return;
      ends.push_back(end);
    }
    too_many_ = too_many_ || cuts_.size() == most_;
    cuts_.push_back(std::move(ends));
  }

  const CutProblem& p_;
  double m_;
  std::size_t most_;
  std::vector<int> need_;
  std::vector<Chosen> chosen_;
  double after_ = 0;  // of the first stage that is chosen
  int looked_at_ = 0;
  bool too_many_ = false;
  std::vector<std::vector<int>> cuts_;
};

}  // namespace

std::optional<std::vector<std::vector<int>>> cuts_within(const CutProblem& problem,
                                                         std::size_t most) {
  return Lister(problem, most).run();
}

}  // namespace planner
