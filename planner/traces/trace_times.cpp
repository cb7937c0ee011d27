#include "planner/traces/trace_times.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/traces/kernel_names.hpp"

namespace planner {

using costmodel::Seconds;

namespace {

Seconds seconds(Nanoseconds time) { return Seconds(1e-9 * static_cast<double>(time)); }

// The time that spans cover, each moment once.
Nanoseconds covered(std::vector<TracedSpan> spans, Nanoseconds* longest_gap = nullptr) {
  std::ranges::sort(spans, {}, &TracedSpan::begin);
  Nanoseconds sum = 0, end = spans.empty() ? 0 : spans.front().begin;
  for (const TracedSpan& span : spans) {
    if (longest_gap != nullptr) *longest_gap = std::max(*longest_gap, span.begin - end);
    if (span.end <= end) continue;
    sum += span.end - std::max(end, span.begin);
    end = span.end;
  }
  return sum;
}

// The iteration of a moment of the host; the number of iterations where it is in none.
std::size_t iteration_of(const Trace& trace, Nanoseconds moment) {
  std::size_t i = 0;
  while (i < trace.iterations.size() &&
         (moment < trace.iterations[i].begin || moment >= trace.iterations[i].end))
    ++i;
  return i;
}

class Sums {
 public:
  Sums(const Trace& trace, const Attributor& attributor)
      : trace_(trace), attributor_(attributor), spans_(trace.iterations.size()) {}

  TraceTimes all() {
    for (const TracedKernel& kernel : trace_.kernels) add(kernel);
    times_.iterations = static_cast<int>(trace_.iterations.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) finish(i);
    const double share = times_.iterations > 0 ? 1.0 / times_.iterations : 1;
    for (Seconds* time : {&times_.kernels, &times_.communication, &times_.no_kind, &times_.busy,
                          &times_.wall, &times_.exposed, &times_.other_rows})
      *time *= share;
    for (double& number : times_.numbers) number *= share;
    for (Seconds& time : times_.kinds) time *= share;
    times_.launches *= share;
    times_.host_records = static_cast<double>(trace_.host_records) * share;
    for (const auto& [key, sum] : parts_)
      times_.parts.push_back({key.first, key.second, sum.time * share, sum.kernels * share});
    std::ranges::sort(times_.parts, std::ranges::greater{},
                      [](const PartTime& p) { return p.time; });
    for (const auto& [key, time] : left_over_)
      times_.left_over.push_back({trace_.text(key.first), trace_.text(key.second), time * share});
    std::ranges::sort(times_.left_over, std::ranges::greater{},
                      [](const LeftOver& left) { return left.time; });
    return std::move(times_);
  }

 private:
  void add(const TracedKernel& kernel) {
    const std::size_t i =
        iteration_of(trace_, kernel.launched > 0 ? kernel.launched : kernel.begin);
    if (i == spans_.size()) return;
    const Seconds time = seconds(kernel.length);
    const std::string& name = trace_.text(kernel.name);
    const bool collective = is_collective(name);
    const TracedSpan span{kernel.begin, kernel.begin + kernel.length};
    spans_[i].all.push_back(span);
    if (!collective) spans_[i].computing.push_back(span);
    times_.kernels += time;
    ++times_.launches;
    if (collective) {
      times_.communication += time;
    } else if (const auto kind = kind_of_kernel(name)) {
      times_.kinds[static_cast<std::size_t>(*kind)] += time;
      ++times_.numbers[static_cast<std::size_t>(*kind)];
    } else {
      times_.no_kind += time;
    }
    const Attribution of = attributor_.of(trace_, kernel);
    if (of.other_rows) times_.other_rows += time;
    auto& sum = parts_[{of.part, of.backward}];
    sum.time += time;
    ++sum.kernels;
    if (of.part != TracedPart::unknown) return;
    const std::uint32_t launcher =
        kernel.launcher == no_operator ? kernel.name : trace_.operators[kernel.launcher].name;
    left_over_[{kernel.name, launcher}] += time;
  }

  void finish(std::size_t i) {
    const Seconds wall = seconds(trace_.iterations[i].end - trace_.iterations[i].begin);
    times_.least_wall = i == 0 ? wall : costmodel::min(times_.least_wall, wall);
    times_.wall += wall;
    Nanoseconds gap = 0;
    const Nanoseconds busy = covered(spans_[i].all, &gap);
    times_.busy += seconds(busy);
    times_.exposed += seconds(busy - covered(spans_[i].computing));
    times_.longest_gap = costmodel::max(times_.longest_gap, seconds(gap));
  }

  struct Spans {
    std::vector<TracedSpan> all, computing;
  };
  struct Sum {
    Seconds time;
    double kernels = 0;
  };
  const Trace& trace_;
  const Attributor& attributor_;
  std::vector<Spans> spans_;
  TraceTimes times_;
  std::map<std::pair<TracedPart, bool>, Sum> parts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Seconds> left_over_;
};

}  // namespace

Seconds TraceTimes::attributed() const {
  Seconds sum;
  for (const PartTime& part : parts)
    if (part.part != TracedPart::unknown) sum += part.time;
  return sum;
}

TraceTimes times_of(const Trace& trace, const Attributor& attributor) {
  return Sums(trace, attributor).all();
}

}  // namespace planner
