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

Nanoseconds moment_of(const TracedKernel& kernel) {
  return kernel.launched > 0 ? kernel.launched : kernel.begin;
}

// The iteration of a moment of the host; the number of iterations where it is in none.
std::size_t iteration_of(const Trace& trace, Nanoseconds moment) {
  std::size_t i = 0;
  while (i < trace.iterations.size() &&
         (moment < trace.iterations[i].begin || moment >= trace.iterations[i].end))
    ++i;
  return i;
}

// Which iterations count, and how many do not.
struct Counted {
  std::vector<bool> is_counted;
  int left_out = 0;
};

Counted counted_iterations(const Trace& trace) {
  const std::size_t n = trace.iterations.size();
  std::vector<double> numbers(n), times(n);
  for (const TracedKernel& kernel : trace.kernels) {
    const std::size_t i = iteration_of(trace, moment_of(kernel));
    if (i == n) continue;
    ++numbers[i];
    times[i] += is_collective(trace.text(kernel.name)) ? 0 : static_cast<double>(kernel.length);
  }
  // Two iterations of nine traces of an H100 have the same number of kernels each, and times within
  // 1 % (of configs/evidence/extra/pytorch-h100.yaml): what is so far off is no such iteration.
  constexpr double fewest = 0.9, longest = 1.25;
  const double most = n == 0 ? 0 : *std::ranges::max_element(numbers);
  double least = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (numbers[i] >= fewest * most && (least == 0 || times[i] < least)) least = times[i];
  Counted counted{std::vector<bool>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    counted.is_counted[i] = numbers[i] >= fewest * most && times[i] <= longest * least;
    counted.left_out += counted.is_counted[i] ? 0 : 1;
  }
  return counted;
}

class Sums {
 public:
  Sums(const Trace& trace, const Attributor& attributor)
      : trace_(trace),
        attributor_(attributor),
        counted_(counted_iterations(trace)),
        spans_(trace.iterations.size()) {}

  TraceTimes all() {
    for (const TracedKernel& kernel : trace_.kernels) add(kernel);
    times_.left_out = counted_.left_out;
    times_.iterations = static_cast<int>(trace_.iterations.size()) - times_.left_out;
    for (std::size_t i = 0; i < spans_.size(); ++i)
      if (counted_.is_counted[i]) finish(i);
    for (const TracedOperator& each : trace_.operators) times_.host_records += counts(each.begin);
    for (const Nanoseconds call : trace_.calls) times_.host_records += counts(call);
    const double share = times_.iterations > 0 ? 1.0 / times_.iterations : 1;
    for (Seconds* time : {&times_.kernels, &times_.communication, &times_.no_kind, &times_.busy,
                          &times_.wall, &times_.exposed, &times_.other_rows, &times_.in_fp32,
                          &times_.in_16_bits, &times_.in_8_bits, &times_.compiled})
      *time *= share;
    for (double& number : times_.numbers) number *= share;
    for (Seconds& time : times_.kinds) time *= share;
    times_.launches *= share;
    times_.host_records *= share;
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
    const std::size_t i = iteration_of(trace_, moment_of(kernel));
    if (i == spans_.size() || !counted_.is_counted[i]) return;
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
      if (*kind == costmodel::KernelKind::products) add_product(kernel, time);
      times_.kinds[static_cast<std::size_t>(*kind)] += time;
      ++times_.numbers[static_cast<std::size_t>(*kind)];
    } else {
      times_.no_kind += time;
    }
    if (name.starts_with("triton_") && name.size() > 11 && name[10] == '_') times_.compiled += time;
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

  // By the type of the first input of the operator that launched it.
  void add_product(const TracedKernel& kernel, Seconds time) {
    if (kernel.launcher == no_operator) return;
    const std::string_view type =
        trace_.type_of(trace_.operators[operator_of(trace_, kernel.launcher)]);
    if (type == "float") times_.in_fp32 += time;
    if (type == "c10::BFloat16" || type == "c10::Half") times_.in_16_bits += time;
    if (type.starts_with("c10::Float8")) times_.in_8_bits += time;
  }

  // 1 for a moment within an iteration that counts.
  int counts(Nanoseconds moment) const {
    const std::size_t i = iteration_of(trace_, moment);
    return i < spans_.size() && counted_.is_counted[i] ? 1 : 0;
  }

  void finish(std::size_t i) {
    const Seconds wall = seconds(trace_.iterations[i].end - trace_.iterations[i].begin);
    const bool first = times_.least_wall.value == 0;
    times_.least_wall = first ? wall : costmodel::min(times_.least_wall, wall);
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
  const Counted counted_;
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
