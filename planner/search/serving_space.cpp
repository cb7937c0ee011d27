#include "planner/search/serving_space.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "costmodel/serving/serving_reader.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int widest_tensor = 64;  // beyond a node tensor parallelism is slower yet; for cut-offs
constexpr int stages_tried = 16;
constexpr int every_count = 32;

std::vector<int> powers(std::int64_t most) {
  std::vector<int> all;
  for (std::int64_t n = 1; n <= most; n *= 2) all.push_back(static_cast<int>(n));
  return all;
}

std::vector<int> choices_of(const std::optional<int>& written, std::int64_t most) {
  return written ? std::vector{*written} : powers(most);
}

std::vector<std::int64_t> steps_of(const ServingScenario& s) {
  if (!s.serving.tokens_open) return {s.serving.limits.max_num_batched_tokens};
  std::set<std::int64_t> steps;
  for (const std::int64_t tokens : {512, 2048, 8192})
    steps.insert(std::max(tokens, least_step(s.serving)));
  return {steps.begin(), steps.end()};
}

std::vector<int> replicas_of(const ServingScenario& s, std::int64_t most, bool every) {
  if (s.plan.dp) return {*s.plan.dp};
  if (most < 1) return {};
  return every ? counts_up_to(most) : std::vector{static_cast<int>(most)};
}

void add_sizes(const ServingScenario& s, ServingSizes sizes, std::vector<ServingSizes>& all) {
  std::set<int> eps{1};
  if (s.plan.ep) {
    eps = {*s.plan.ep};
  } else if (s.model.experts > 0) {
    eps.insert({sizes.tp, sizes.tp * sizes.dp});
  }
  for (const int ep : eps) {
    sizes.ep = ep;
    if (sizes_fault(sizes, s.model, s.cluster).empty()) all.push_back(sizes);
  }
}

}  // namespace

void choose(const ServingChoice& choice, ServingScenario& s) {
  s.serving.weights = choice.weights;
  s.serving.weights_open = false;
  s.serving.limits.max_num_seqs = choice.max_num_seqs;
  s.serving.limits.max_num_batched_tokens = choice.max_num_batched_tokens;
  s.plan.tp = choice.sizes.tp;
  s.plan.pp = choice.sizes.pp;
  s.plan.ep = choice.sizes.ep;
  s.plan.dp = choice.sizes.dp;
  s.plan.disaggregation = choice.apart;
}

ServingScenario with_choice(ServingScenario s, const ServingChoice& choice) {
  choose(choice, s);
  return s;
}

std::int64_t affordable_devices(const ServingScenario& s) {
  const double price = s.cluster.operation.usd_per_device_hour;
  if (s.serving.goal.usd_per_hour <= 0 || price <= 0) return s.cluster.devices;
  // A budget of exactly n devices pays for n, whatever the last bit says.
  const double paid = std::floor(s.serving.goal.usd_per_hour / price * (1 + 1e-12));
  return std::min(s.cluster.devices, static_cast<std::int64_t>(std::min(paid, 1e9)));
}

bool may_take_fewer(const ServingScenario& s) {
  return s.serving.arrival_rate > 0 || s.serving.goal.any();
}

std::vector<int> counts_up_to(std::int64_t most) {
  std::vector<int> all;
  std::int64_t step = 1;
  for (std::int64_t n = 1; n <= most; n += step) {
    all.push_back(static_cast<int>(n));
    if (n >= every_count && (n & (n - 1)) == 0) step = n / 8;
  }
  if (!all.empty() && all.back() != most) all.push_back(static_cast<int>(most));
  return all;
}

std::vector<ServingSizes> instance_sizes(const ServingScenario& s, std::int64_t devices,
                                         bool every) {
  std::vector<ServingSizes> sizes;
  for (const int tp : choices_of(s.plan.tp, std::min<std::int64_t>(devices, widest_tensor))) {
    for (const int pp : choices_of(s.plan.pp, std::min<std::int64_t>(devices / tp, stages_tried))) {
      for (const int dp : replicas_of(s, devices / (std::int64_t{tp} * pp), every)) {
        if (std::int64_t{tp} * pp * dp <= devices) add_sizes(s, {tp, pp, 1, dp}, sizes);
      }
    }
  }
  return sizes;
}

std::vector<WeightFormat> formats_of(const ServingScenario& s) {
  if (!s.serving.weights_open) return {s.serving.weights};
  const auto& device = s.cluster.device;
  const bool wide = device.peak_of(Precision::bf16).value > 0;
  std::vector<WeightFormat> all{wide ? WeightFormat::bf16 : WeightFormat::fp16, WeightFormat::int8,
                                WeightFormat::int4};
  if (device.peak_of(Precision::fp8).value > 0) all.push_back(WeightFormat::fp8);
  if (device.peak_of(Precision::nvfp4).value > 0) all.push_back(WeightFormat::nvfp4);
  return all;
}

std::vector<std::int64_t> batches_of(const ServingScenario& s) {
  if (!s.serving.seqs_open) return {s.serving.limits.max_num_seqs};
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
}

ServingChoice usual_choice(const ServingScenario& s, const ServingSizes& sizes,
                           WeightFormat format) {
  const ServingLimits& limits = s.serving.limits;
  return {sizes, format, limits.max_num_seqs, limits.max_num_batched_tokens, {}};
}

std::vector<ServingChoice> serving_space(const ServingScenario& s) {
  std::vector<ServingChoice> all;
  if (s.plan.disaggregation) return all;
  for (const ServingSizes& size : instance_sizes(s, affordable_devices(s), may_take_fewer(s))) {
    for (const WeightFormat format : formats_of(s)) {
      const auto before = static_cast<std::ptrdiff_t>(all.size());
      for (const std::int64_t seqs : batches_of(s)) {
        for (const std::int64_t tokens : steps_of(s)) {
          if (tokens >= seqs) all.push_back({size, format, seqs, tokens, {}});
        }
      }
      const ServingChoice usual = usual_choice(s, size, format);
      if (std::find(all.begin() + before, all.end(), usual) == all.end()) all.push_back(usual);
    }
  }
  return all;
}

ServingMerit merit_of(const ServingGoal& goal, double output_per_s, std::int64_t devices,
                      double answer) {
  const auto n = static_cast<double>(devices);
  if (goal.output_per_s > 0) return {-n, output_per_s, -answer};
  if (goal.usd_per_hour > 0) return {output_per_s, -n, -answer};
  return {output_per_s / n, -answer, 0};
}

namespace {

// Choices of a band, and of equal merit; a band is a tenth wide, and much room is much room.
constexpr std::size_t most_of_band = 8, most_equal = 12;
constexpr double band_width = 1.1, much_room = 0.2;

int band_of(double excess) {
  return static_cast<int>(std::floor(std::log(std::max(excess, much_room)) / std::log(band_width)));
}

}  // namespace

bool Shortlist::takes(const ServingMerit& merit, double excess, std::int64_t devices) const {
  const auto at = ranked_.find({devices, band_of(excess)});
  return at == ranked_.end() || at->second.size() < most_of_band || merit > at->second.back().merit;
}

void Shortlist::take(const PricedChoice& choice, std::int64_t devices) {
  std::vector<PricedChoice>& ranked = ranked_[{devices, band_of(choice.excess)}];
  const auto same = std::ranges::find_if(ranked, [&](const PricedChoice& o) {
    return o.choice.apart == choice.choice.apart && o.choice.sizes == choice.choice.sizes &&
           o.choice.weights == choice.choice.weights;
  });
  if (same != ranked.end()) {
    if (choice.merit <= same->merit) return;
    ranked.erase(same);
  }
  const auto worse = [&](const PricedChoice& o) { return choice.merit > o.merit; };
  ranked.insert(std::ranges::find_if(ranked, worse), choice);
  if (ranked.size() > most_of_band) ranked.pop_back();
}

std::vector<PricedChoice> Shortlist::sorted() const {
  std::vector<PricedChoice> all;  // with the most room first
  for (const auto& [place, ranked] : ranked_) all.insert(all.end(), ranked.begin(), ranked.end());
  const auto first = [](const PricedChoice& c) { return c.merit.first; };
  std::ranges::stable_sort(all, std::greater<>(), first);
  std::vector<PricedChoice> few;
  for (std::size_t i = 0, equal = 0; i < all.size(); ++i) {
    equal = i > 0 && first(all[i]) == first(all[i - 1]) ? equal + 1 : 0;
    if (equal < most_equal) few.push_back(all[i]);
  }
  return few;
}

}  // namespace planner
