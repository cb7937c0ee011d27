#include "planner/diagnosis/better_sizes.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Sized {
  std::int64_t size = 0;
  Estimate best;
};

// The quickest for its tokens, by the best even plan of each.
template <class Resize>
std::optional<Sized> quickest(const Scenario& s, const std::set<std::int64_t>& sizes,
                              const Resize& resize, const std::function<bool()>& stopped) {
  std::optional<Sized> quickest;
  for (const std::int64_t size : sizes) {
    Scenario changed = s;
    resize(changed, size);
    changed.search.top = 1;
    auto found = chosen_plan(changed, {.reach = Reach::even}, stopped);
    if (found && (!quickest || found->tokens_per_s > quickest->best.tokens_per_s))
      quickest = Sized{size, std::move(*found)};
  }
  return quickest;
}

// Multiples of a node, two nodes, four ... next to the number of devices.
std::set<std::int64_t> rounded(const Scenario& s, bool up) {
  const std::int64_t n = s.cluster.devices, most = n + n / 4;
  std::set<std::int64_t> all;
  for (std::int64_t step = s.cluster.devices_per_node; step <= n; step *= 2) {
    const std::int64_t next = up ? (n / step + 1) * step : (n - 1) / step * step;
    if (next > 0 && next <= most) all.insert(next);
  }
  return all;
}

// Multiples, next to the batch, of the numbers of replicas that these devices allow.
std::set<std::int64_t> batches(const Scenario& s) {
  const std::int64_t wanted = s.training.global_batch;
  std::set<std::int64_t> all;
  for (const std::int64_t dp : divisors(s.cluster.devices)) {
    const std::int64_t nearest = (wanted + dp / 2) / dp * dp;
    constexpr std::int64_t parts = 50;  // 2 %
    const std::int64_t change = nearest > wanted ? nearest - wanted : wanted - nearest;
    if (nearest > 0 && change > 0 && change * parts <= wanted) all.insert(nearest);
  }
  return all;
}

}  // namespace

std::vector<std::string> better_sizes(const Scenario& s, const Estimate& best,
                                      const std::function<bool()>& stopped) {
  std::vector<std::string> lines;
  const auto tell = [&](const std::optional<Sized>& found, const std::string& what) {
    constexpr double counts = 1.01;
    if (!found || found->best.tokens_per_s < best.tokens_per_s * counts) return;
    lines.push_back(fmt::format("{}: {} an iteration, {:.2g} times as many tokens a second, by {}",
                                what, format_seconds(found->best.iteration),
                                found->best.tokens_per_s / best.tokens_per_s,
                                to_string(found->best.plan)));
  };
  const auto devices = [](Scenario& changed, std::int64_t n) {
    changed.cluster = resized(changed.cluster, n);
  };
  const auto batch = [](Scenario& changed, std::int64_t n) { changed.training.global_batch = n; };
  const auto sized = [&](std::int64_t n) {
    return fmt::format("{} devices instead of {}", format_integer(n),
                       format_integer(s.cluster.devices));
  };
  const auto more = quickest(s, rounded(s, true), devices, stopped);
  if (more) tell(more, sized(more->size));
  const auto fewer = quickest(s, rounded(s, false), devices, stopped);
  if (fewer) tell(fewer, sized(fewer->size));
  const auto other = quickest(s, batches(s), batch, stopped);
  if (other) tell(other, fmt::format("another batch: training.global_batch={}", other->size));
  return lines;
}

}  // namespace planner
