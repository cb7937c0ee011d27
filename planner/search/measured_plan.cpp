#include "planner/search/measured_plan.hpp"

#include <algorithm>

namespace planner {

using namespace costmodel;

namespace {

// The ZeRO stages left; a stage that the scenario itself rules out stays out.
std::vector<int> stages_left(const std::vector<int>& tried, bool second, bool third) {
  std::vector<int> left = tried.empty() ? std::vector{0, 1, 2, 3} : tried;
  std::erase_if(left, [&](int zero) { return (zero == 2 && !second) || (zero == 3 && !third); });
  return left;
}

}  // namespace

std::optional<Scenario> without_features(Scenario s, PlanFeatures features) {
  const auto out = [features](PlanFeature one) { return (features & bit_of(one)) != 0; };
  StackOffers& offers = s.training.stack.offers;
  SearchLimits& limits = s.search;
  if (out(PlanFeature::context_parallel)) limits.max_cp = 1;
  if (out(PlanFeature::expert_tensor) && !s.plan.etp) s.plan.etp = 1;
  if (out(PlanFeature::expert_overlap)) offers.expert_overlap = false;
  if (out(PlanFeature::virtual_stages)) limits.max_vpp = 1;
  if (out(PlanFeature::split_backward)) offers.zero_bubble = false;
  if (out(PlanFeature::two_way)) offers.dualpipe = false;
  if (out(PlanFeature::uneven_layers)) offers.uneven_stages = offers.stage_lists = false;
  if (out(PlanFeature::own_sizes)) offers.stage_sizes = false;
  limits.zero = stages_left(limits.zero, !out(PlanFeature::zero_2), !out(PlanFeature::zero_3));
  if (out(PlanFeature::zero_3_in_pipeline))
    offers.max_zero_in_pipeline = std::min(offers.max_zero_in_pipeline, 2);
  if (out(PlanFeature::selective_recompute)) offers.selective_recompute = false;
  if (out(PlanFeature::module_recompute)) offers.recompute_modules = false;
  if (out(PlanFeature::partial_recompute)) offers.partial_recompute = false;
  if (out(PlanFeature::full_recompute)) {
    if (limits.recompute.empty())
      limits.recompute = {Recomputation::none, Recomputation::selective};
    std::erase(limits.recompute, Recomputation::full);
  }
  if (limits.zero.empty() || (limits.recompute.empty() && out(PlanFeature::full_recompute)))
    return std::nullopt;
  if (out(PlanFeature::states_in_host) || out(PlanFeature::activations_in_host))
    std::erase(s.plan.automatic, "offload");
  if (out(PlanFeature::shard_groups)) std::erase(s.plan.automatic, "dp_replicate");
  return s;
}

void add_measured(Strategies& all, const Scenario& s, const SearchMethod& method,
                  const std::function<bool()>& stopped) {
  const PlanFeatures none_has = s.training.error_band.unmeasured;
  if (all.found.plans.empty()) return;
  const PlanFeatures lacking = features_of(all.found.plans.front().plan) & none_has;
  if (lacking == 0) return;
  SearchMethod own = method;
  if (own.reach != Reach::even) own.reach = {};
  if (const auto narrow = without_features(s, none_has))
    all.measured = chosen_plan(*narrow, own, stopped);
  if (stopped && stopped()) return;  // not known, which is not the same as none
  all.unmeasured = lacking;
  // What the scenario's own plan fixes stays.
  if (all.measured && (features_of(all.measured->plan) & none_has) != 0) all.measured.reset();
}

}  // namespace planner
