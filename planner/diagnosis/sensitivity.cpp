#include "planner/diagnosis/sensitivity.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/simplest_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

Scenario moved(const Scenario& scenario, const PricedInput& input, double value) {
  Scenario s = scenario;
  input.set(s, value);
  return s;
}

Seconds time_of(const Scenario& s, const ParallelPlan& plan) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  return evaluator.estimate(plan).iteration;
}

InputEffect effect_of(const Scenario& scenario, const Estimate& plan, PricedInput input) {
  InputEffect e;
  e.at_low = time_of(moved(scenario, input, input.low), plan.plan);
  e.at_high = time_of(moved(scenario, input, input.high), plan.plan);
  const auto change = [&](Seconds t) { return std::abs(t / plan.iteration - 1); };
  e.effect = std::max(change(e.at_low), change(e.at_high));
  e.input = std::move(input);
  return e;
}

std::vector<InputEffect> effects_of(const Scenario& scenario, const Estimate& plan,
                                    const std::vector<StatedSpread>& stated) {
  std::vector<InputEffect> all;
  for (PricedInput& input : priced_inputs(scenario, stated))
    all.push_back(effect_of(scenario, plan, std::move(input)));
  std::ranges::stable_sort(all, std::greater<>(), &InputEffect::effect);
  return all;
}

// Takes those that change nothing out of the list.
Sensitivity told(Sensitivity all) {
  constexpr double nothing = 5e-6;  // of the iteration: less is not seen in any report
  auto& inputs = all.inputs;
  const auto is_idle = [&](const InputEffect& e) {
    return e.effect < nothing && !e.below && !e.above;
  };
  for (const InputEffect& e : inputs)
    if (is_idle(e)) all.unmoved.push_back(e.input.key);
  std::erase_if(inputs, is_idle);
  return all;
}

// Searches again with one input moved.
class Search {
 public:
  Search(const Scenario& scenario, const std::vector<Estimate>& ranked,
         const std::function<bool()>& stopped)
      : scenario_(scenario), ranked_(ranked), stopped_(stopped) {
    scenario_.search.top = 1;
  }

  // Where the best plan changes as the input goes from one value to another; nothing if it is the
  // first one there too.
  std::optional<PlanChange> change(const PricedInput& input, double from, double end) const {
    const Found beyond = found_at(input, end);
    if (beyond.first) return std::nullopt;
    PlanChange change{.value = from, .best = beyond.best};
    constexpr int halvings = 10;
    double last = end;
    for (int i = 0; i < halvings; ++i) {
      const double middle = std::sqrt(change.value * last);
      Found there = found_at(input, middle);
      if (there.first) {
        change.value = middle;
      } else {
        last = middle;
        change.best = std::move(there.best);
      }
    }
    const Scenario s = moved(scenario_, input, end);
    Evaluator evaluator(s.model, s.cluster, s.training);
    const Estimate kept = evaluator.estimate(ranked_.front().plan);
    change.fits = kept.peak <= memory_limit(s);
    if (beyond.best) change.loss = kept.iteration / beyond.best->iteration - 1;
    return change;
  }

 private:
  struct Found {
    bool first = false;  // the first plan is still chosen
    std::optional<Estimate> best = {};
  };
  Found found_at(const PricedInput& input, double value) const {
    const Scenario s = moved(scenario_, input, value);
    Evaluator evaluator(s.model, s.cluster, s.training);
    SearchResult found = search(s, evaluator, stopped_);
    if (found.expired) return {.first = true};
    std::vector<Estimate> all = found.plans;
    std::optional<Seconds> first;
    for (const Estimate& plan : ranked_) {
      Estimate there = evaluator.estimate(plan.plan);
      if (there.peak > memory_limit(s)) continue;
      if (&plan == &ranked_.front()) first = there.iteration;
      all.push_back(std::move(there));
    }
    if (all.empty()) return {};
    std::ranges::stable_sort(all, {}, &Estimate::iteration);
    // A plan that is chosen for being simple stays so while it is quick enough.
    if (first && *first <= most_time(all.front().iteration, s)) return {.first = true};
    return {.best = simplest_plan(s, all, found, evaluator)};
  }

  Scenario scenario_;
  const std::vector<Estimate>& ranked_;
  const std::function<bool()>& stopped_;
};

void find_change(const Search& search, InputEffect& e, bool far, bool up) {
  const PricedInput& input = e.input;
  const double end = up ? input.high : input.low;
  auto& change = up ? e.above : e.below;
  if (end != input.value) change = search.change(input, input.value, end);
  if (change) {
    change->inside = true;
    return;
  }
  const double limit = up ? std::min(input.most, input.value * far_factor)
                          : std::max(input.least, input.value / far_factor);
  if (far && (up ? limit > end : limit < end)) change = search.change(input, end, limit);
}

}  // namespace

Sensitivity sensitivity(const Scenario& scenario, const Estimate& plan,
                        const std::vector<StatedSpread>& stated) {
  return told({.plan = plan, .inputs = effects_of(scenario, plan, stated)});
}

Sensitivity sensitivity_of_search(const Scenario& scenario, const std::vector<Estimate>& ranked,
                                  const std::vector<StatedSpread>& stated, int threads,
                                  const std::function<bool()>& stopped) {
  const Estimate& plan = ranked.front();
  Sensitivity all{.plan = plan, .searched = true};
  all.inputs = effects_of(scenario, plan, stated);
  const Search search(scenario, ranked, stopped);
  std::atomic<bool> ended = false;
  share_out(2 * all.inputs.size(), threads, [&](std::size_t i) {
    if (ended || (stopped && stopped())) {
      ended = true;
      return;
    }
    find_change(search, all.inputs[i / 2], i / 2 < moved_far, i % 2 == 1);
  });
  all.interrupted = ended || (stopped && stopped());
  return told(std::move(all));
}

}  // namespace planner
