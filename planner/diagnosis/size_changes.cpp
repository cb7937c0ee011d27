#include "planner/diagnosis/size_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string devices_remedy(const Scenario& s, std::int64_t devices) {
  const std::int64_t described =
      s.cluster.known_tiers.empty() ? devices : s.cluster.known_tiers.back().devices;
  const std::string beyond =
      devices > described
          ? fmt::format(" (more than the {} whose links are described)", format_integer(described))
          : "";
  return fmt::format("{} devices instead of {}{}", format_integer(devices),
                     format_integer(s.cluster.devices), beyond);
}

// Records so many devices as a remedy if something fits, also where plan.dp has to be freed.
bool try_devices(const Scenario& s, std::int64_t devices, Attempts& attempts) {
  Scenario changed = s;
  changed.cluster = resized(s.cluster, devices);
  const std::string what = devices_remedy(s, devices);
  const std::string set = fmt::format("cluster.devices={}", devices);
  if (try_change(changed, what, {set}, attempts)) return true;
  if (!s.plan.dp || attempts.own != nullptr) return false;
  changed.plan.dp.reset();
  return try_change(changed, what + " and plan.dp freed", {set, "plan.dp=auto"}, attempts);
}

}  // namespace

void more_devices(const Scenario& s, Attempts& attempts) {
  constexpr std::int64_t most = 64, largest = 1'000'000;
  const std::int64_t node = s.cluster.devices_per_node;
  for (std::int64_t factor = 2; factor <= most && s.cluster.devices * factor <= largest;
       factor *= 2) {
    const std::int64_t enough = s.cluster.devices * factor, few = enough / 2;
    if (!try_devices(s, enough, attempts)) continue;
    const Remedy doubled = std::move(attempts.remedies.back());
    attempts.remedies.pop_back();
    constexpr std::int64_t most_tried = 64;
    const std::int64_t step = few < node ? 1 : node * ((few / node + most_tried - 1) / most_tried);
    for (std::int64_t n = (few / step + 1) * step; n < enough; n += step) {
      if (n > node && n % node != 0) continue;
      if (try_devices(s, n, attempts)) return;
    }
    attempts.remedies.push_back(doubled);
    return;
  }
  attempts.tried.push_back(fmt::format("up to {} times the devices", most));
}

namespace {

// Half of an even number; of an odd one the power of two below, 0 of 1.
std::int64_t half(std::int64_t n) {
  return n % 2 == 0 ? n / 2 : static_cast<std::int64_t>(std::bit_floor(std::uint64_t(n - 1)));
}

}  // namespace

void fewer_devices(const Scenario& s, Attempts& attempts) {
  ParallelPlan fixed;
  fixed.tp = s.plan.tp.value_or(1);
  fixed.pp = s.plan.pp.value_or(1);
  fixed.cp = s.plan.cp.value_or(1);
  fixed.dp = s.plan.dp.value_or(1);
  const std::int64_t unit = fixed.devices(), all = s.cluster.devices;
  const auto fits = [&](std::int64_t n) {
    Scenario changed = s;
    changed.cluster = resized(s.cluster, n);
    const std::string set = fmt::format("cluster.devices={}", n);
    return try_change(changed, "fewer devices: " + set, {set}, attempts);
  };
  // Nodes less first, and then ever fewer.
  const std::int64_t node = std::lcm(unit, std::max<std::int64_t>(1, s.cluster.devices_per_node));
  constexpr int nearest = 64;
  std::int64_t near = (all - 1) / node * node;
  for (int tried = 0; near > all / 2 && tried < nearest; near -= node, ++tried)
    if (fits(near)) return;
  std::int64_t units = all / unit;
  if (units * unit == all) units = half(units);
  for (; units > 0; units = half(units))
    if (fits(units * unit)) return;
  attempts.tried.emplace_back("fewer devices");
}

void nearest_batch(const Scenario& s, Attempts& attempts) {
  const std::int64_t model_parallel =
      std::int64_t{s.plan.tp.value_or(1)} * s.plan.pp.value_or(1) * s.plan.cp.value_or(1);
  const std::int64_t micro_batch = s.plan.micro_batch.value_or(1);
  const std::int64_t replicas = std::max<std::int64_t>(1, s.cluster.devices / model_parallel);
  const std::int64_t wanted = s.training.global_batch;
  for (const std::int64_t dp : divisors(s.plan.dp ? *s.plan.dp : replicas)) {
    if (s.plan.dp && dp != *s.plan.dp) continue;
    const std::int64_t share = dp * micro_batch;
    const std::int64_t nearest = std::max(share, (wanted + share / 2) / share * share);
    if (nearest == wanted) continue;
    Scenario changed = s;
    changed.training.global_batch = nearest;
    const std::string set = fmt::format("training.global_batch={}", nearest);
    if (try_change(changed, "another batch: " + set, {set}, attempts)) return;
  }
  attempts.tried.emplace_back("another batch");
}

void half_sequence(const Scenario& s, Attempts& attempts) {
  const Packing& samples = s.training.packing;
  constexpr std::int64_t most = 64;
  for (std::int64_t share = 2; share <= most; share *= 2) {
    const std::int64_t length = s.training.sequence / share;
    if (length < 1 || samples.lengths.mean > static_cast<double>(length)) return;
    if (share == 2) attempts.tried.emplace_back("half the sequence");
    Scenario changed = s;
    changed.training.sequence = length;
    if (samples.any())
      changed.training.packing = packing_of(samples.lengths, length, samples.packed);
    if (try_change(changed, fmt::format("sequence {} instead of {}", length, s.training.sequence),
                   {fmt::format("training.sequence={}", length)}, attempts))
      return;
  }
}

}  // namespace planner
