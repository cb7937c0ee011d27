#include "planner/report/packing_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/plan_estimate.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string lengths_text(const LengthSpec& l) {
  if (l.most > 0) return fmt::format("uniform between {:g} and {:g} tokens", l.least, l.most);
  if (l.p95 > l.mean) {
    return fmt::format("log-normal, {:g} tokens on average, {:g} at the 95th percentile", l.mean,
                       l.p95);
  }
  return fmt::format("{:g} tokens each", l.mean);
}

// The scenario with samples packed, or each padded to a sequence of its own.
Scenario otherwise(Scenario s, bool packed) {
  s.training.packing = packing_of(s.training.packing.lengths, s.training.sequence, packed);
  return s;
}

Estimate estimated(const Estimate& e, const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, e.plan);
}

}  // namespace

double samples_per_s(const Estimate& e, const Scenario& s) {
  return static_cast<double>(s.training.global_batch) * s.training.packing.samples /
         e.iteration.value;
}

std::string samples_text(const Estimate& e, const Scenario& s) {
  const Packing& packing = s.training.packing;
  if (!packing.any()) return "";
  return fmt::format("{:.3g} a sequence, {:.1f} % filled: {:.4g} samples/s, {} of their tokens/s",
                     packing.samples, 100 * packing.filled, samples_per_s(e, s),
                     format_integer(std::llround(e.tokens_per_s * packing.filled)));
}

std::string padding_sentence(const Estimate& e, const Scenario& s) {
  const Packing& packing = s.training.packing;
  const StackSpec& stack = s.training.stack;
  const bool can = stack.offers.packing && stack.kernels.attention != AttentionKernel::unfused &&
                   s.model.unpacked() == nullptr;
  if (!packing.any() || packing.packed || !can) return "";
  const Scenario packed = otherwise(s, true);
  const Estimate other = estimated(e, packed);
  return fmt::format(
      "Of the tokens {:.0f} % are padding: training.packing=true trains {:.3g} times as many "
      "samples "
      "a second.",
      100 * (1 - packing.filled), samples_per_s(other, packed) / samples_per_s(e, s));
}

std::vector<Explained> explained_packing(const Estimate& e, const Scenario& s) {
  const Packing& packing = s.training.packing;
  if (!packing.any()) return {};
  const std::string group = "samples";
  std::vector<Explained> rows{
      {group, "samples", fmt::format("{:.4g}", packing.samples),
       fmt::format("in a sequence of {} tokens; {}", s.training.sequence,
                   lengths_text(packing.lengths))},
      {group, "filled", fmt::format("{:.2f} %", 100 * packing.filled),
       packing.packed
           ? "of a sequence's tokens, by first fit in an order of chance; the rest is padding"
           : "of a sequence's tokens; the rest is padding, computed all the same"}};
  if (!packing.packed) return rows;
  const Estimate alone = estimated(e, otherwise(s, false));
  rows.push_back({group, "attended", fmt::format("{:.4g}", packing.attended),
                  fmt::format("tokens of a token's own sample, sum of l^2 / s, in place of s = {}: "
                              "attention costs {:.1f} % as much",
                              s.training.sequence,
                              100 * packing.attended / static_cast<double>(s.training.sequence))});
  rows.push_back({group, "spread", fmt::format("{:.1f} %", 100 * packing.spread / packing.attended),
                  "standard deviation of that between sequences: replicas have unequal work"});
  rows.push_back(
      {group, "T_longest", format_seconds(e.longest_samples),
       fmt::format("waiting for the replica of {} whose sequences have the longest samples, of "
                   "the expected maximum; part of imbalance",
                   e.plan.dp)});
  rows.push_back({group, "padding",
                  fmt::format("{:.2f}x", samples_per_s(e, s) * alone.iteration.value /
                                             static_cast<double>(s.training.global_batch)),
                  fmt::format("faster than each sample padded to a sequence: {} for {} samples",
                              format_seconds(alone.iteration), s.training.global_batch)});
  return rows;
}

}  // namespace planner
