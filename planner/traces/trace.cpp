#include "planner/traces/trace.hpp"

#include <algorithm>
#include <numeric>

namespace planner {

std::uint32_t TextTable::of(std::string_view text) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(&numbers_.emplace(std::string(text), number).first->first);
  return number;
}

void nest(Trace& trace) {
  std::vector<std::uint32_t> order(trace.operators.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto& all = trace.operators;
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const TracedOperator &x = all[a], &y = all[b];
    if (x.thread != y.thread) return x.thread < y.thread;
    if (x.begin != y.begin) return x.begin < y.begin;
    return x.length != y.length ? x.length > y.length : a < b;
  });
  std::vector<std::uint32_t> open;
  std::uint32_t thread = 0;
  for (const std::uint32_t number : order) {
    TracedOperator& now = trace.operators[number];
    if (now.thread != thread) open.clear();
    thread = now.thread;
    const auto ends = [&](std::uint32_t other) { return all[other].begin + all[other].length; };
    while (!open.empty() && ends(open.back()) < now.begin + now.length) open.pop_back();
    now.outer = open.empty() ? no_operator : open.back();
    open.push_back(number);
  }
}

std::uint32_t operator_of(const Trace& trace, std::uint32_t launcher) {
  while (trace.text(trace.operators[launcher].name).starts_with("cu") &&
         trace.operators[launcher].outer != no_operator)
    launcher = trace.operators[launcher].outer;
  return launcher;
}

namespace {

std::vector<TracedSpan> spans_named(const Trace& trace, std::string_view beginning) {
  std::vector<TracedSpan> spans;
  for (const TracedOperator& each : trace.operators) {
    const std::string_view name = trace.text(each.name);
    // "step 7" and "step", but no "step_forward".
    const std::string_view after = name.substr(std::min(beginning.size(), name.size()));
    const bool numbered =
        after.empty() || after.find_first_not_of(" #:_0123456789") == std::string_view::npos;
    const bool optimizer = beginning.starts_with("Optimizer");
    if (name.starts_with(beginning) && (numbered || optimizer))
      spans.push_back({each.begin, each.begin + each.length});
  }
  std::ranges::sort(spans, {}, &TracedSpan::begin);
  return spans;
}

}  // namespace

void find_iterations(Trace& trace) {
  trace.iterations.clear();
  for (const std::string_view name : {"ProfilerStep", "iteration", "train_step", "step"})
    if (trace.iterations.empty()) trace.iterations = spans_named(trace, name);
  if (trace.iterations.empty()) {
    // From one step of the optimizer to the next is an iteration; before the first nobody knows.
    const auto steps = spans_named(trace, "Optimizer.step#");
    for (std::size_t i = 1; i < steps.size(); ++i)
      trace.iterations.push_back({steps[i - 1].end, steps[i].end});
  }
  trace.marked = !trace.iterations.empty();
  if (!trace.marked && !trace.kernels.empty()) {
    TracedSpan all{trace.kernels.front().begin, 0};
    for (const TracedKernel& kernel : trace.kernels) {
      all.begin = std::min(all.begin, kernel.launched > 0 ? kernel.launched : kernel.begin);
      all.end = std::max(all.end, kernel.begin + kernel.length);
    }
    trace.iterations.push_back(all);
  }
}

}  // namespace planner
