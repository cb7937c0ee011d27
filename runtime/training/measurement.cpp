#include "runtime/training/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// Serialises a measurement to numbers in a fixed order; one function reads and writes.
class Numbers {
 public:
  std::vector<double> values;
  std::size_t at = 0;
  bool reading = false;

  void operator()(double& v) {
    if (reading) {
      v = values[at++];
    } else {
      values.push_back(v);
    }
  }
  void operator()(Seconds& v) { (*this)(v.value); }
  template <class Integer>
  requires(std::is_integral_v<Integer> || std::is_enum_v<Integer>) void operator()(Integer& v) {
    auto number = static_cast<double>(v);
    (*this)(number);
    v = static_cast<Integer>(number);
  }
  template <class T>
  void operator()(std::vector<T>& list) {
    auto size = list.size();
    (*this)(size);
    list.resize(size);
    for (T& item : list) (*this)(item);
  }
  void operator()(ActionTime& a) {
    (*this)(a.action.kind);
    (*this)(a.action.stage);
    (*this)(a.action.micro_batch);
    (*this)(a.action.beside);
    (*this)(a.start);
    (*this)(a.end);
  }
  void operator()(TimeSpan& span) {
    (*this)(span.start);
    (*this)(span.end);
  }
  void operator()(RankMeasurement& m) {
    (*this)(m.pipeline_rank);
    for (auto* list : {&m.iterations, &m.forward, &m.backward}) (*this)(*list);
    (*this)(m.loss_sums);
    for (auto* time : {&m.pipeline_end, &m.reduced, &m.end}) (*this)(*time);
    (*this)(m.actions);
    (*this)(m.reductions);
    (*this)(m.pace);
    (*this)(m.loss_scale);
    (*this)(m.skipped);
    TrafficCount& t = m.traffic;
    for (auto* bytes : {&t.all_reduce, &t.all_gather, &t.reduce_scatter, &t.all_to_all, &t.send})
      (*this)(*bytes);
    for (auto& bytes : m.peaks) (*this)(bytes);
    (*this)(m.peak);
  }
};

RankMeasurement received(Transport& transport, int from) {
  double size = 0;
  transport.recv(from, control_tag(1), std::as_writable_bytes(std::span(&size, 1)));
  Numbers numbers;
  numbers.reading = true;
  numbers.values.resize(static_cast<std::size_t>(size));
  transport.recv(from, control_tag(1), std::as_writable_bytes(std::span(numbers.values)));
  RankMeasurement m;
  numbers(m);
  return m;
}

void deliver(Transport& transport, RankMeasurement m) {
  Numbers numbers;
  numbers(m);
  const auto size = static_cast<double>(numbers.values.size());
  transport.send(0, control_tag(1), std::as_bytes(std::span(&size, 1)));
  transport.send(0, control_tag(1), std::as_bytes(std::span(numbers.values)));
}

Seconds median(std::vector<Seconds> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool computes(const Action& a) {
  return a.kind == ActionKind::forward || a.kind == ActionKind::backward ||
         a.kind == ActionKind::weight_gradient;
}

// The events of one pipeline of several.
Timeline pipeline_of(const Timeline& all, const Pipeline& pipeline) {
  Timeline own{pipeline.plan.pp, {}};
  for (costmodel::Event event : all.events) {
    event.rank -= pipeline.first_stage;
    if (event.rank >= 0 && event.rank < own.ranks) own.events.push_back(std::move(event));
  }
  return own;
}

// That of the pipeline that ends last, and so determines the iteration.
double bubble_of(const Timeline& timeline, const std::vector<Pipeline>& pipelines) {
  costmodel::Event last;
  for (const costmodel::Event& event : timeline.events) {
    if (event.stream == costmodel::Stream::compute && event.end > last.end) last = event;
  }
  return bubble_fraction(pipeline_of(timeline, pipeline_of_stage(pipelines, last.rank)));
}

void add_actions(const RankMeasurement& rank, Timeline& timeline) {
  using costmodel::Stream;
  const int at = rank.pipeline_rank;
  for (const ActionTime& a : rank.actions) {
    if (a.action.beside) {
      timeline.events.back().name += "+" + to_text(a.action);
      continue;
    }
    timeline.events.push_back({at, computes(a.action) ? Stream::compute : Stream::pipeline_transfer,
                               to_text(a.action), a.start, a.end});
  }
}

void add_events(const RankMeasurement& rank, Timeline& timeline) {
  using costmodel::Stream;
  const int at = rank.pipeline_rank;
  add_actions(rank, timeline);
  for (const TimeSpan& span : rank.reductions) {
    timeline.events.push_back(
        {at, Stream::data_parallel, "gradient reduction", span.start, span.end});
  }
  timeline.events.push_back({at, Stream::optimizer, "optimizer step", rank.reduced, rank.end});
}

// How many ranks each pipeline rank has.
std::vector<double> counted(const std::vector<RankMeasurement>& ranks, int pipeline_ranks) {
  std::vector<double> same(static_cast<std::size_t>(pipeline_ranks), 0);
  for (const RankMeasurement& rank : ranks) ++same[static_cast<std::size_t>(rank.pipeline_rank)];
  return same;
}

// Sums over the ranks that have a stage; then the means.
void mean_stages(const std::vector<RankMeasurement>& ranks, const ParallelPlan& plan,
                 RunSummary& all) {
  const auto stages = static_cast<std::size_t>(plan.virtual_stages());
  const auto same = counted(ranks, plan.pp);
  all.stage_forward.resize(stages);
  all.stage_backward.resize(stages);
  for (std::size_t k = 0; k < stages; ++k) {
    const int holder = costmodel::rank_of(plan.schedule, plan.pp, static_cast<int>(k));
    const double n = same[static_cast<std::size_t>(holder)];
    for (const RankMeasurement& rank : ranks) {
      all.stage_forward[k] += rank.forward[k] / n;
      all.stage_backward[k] += rank.backward[k] / n;
    }
  }
}

void count_bytes(const std::vector<RankMeasurement>& ranks, const ParallelPlan& plan,
                 RunSummary& all) {
  const auto stages = static_cast<std::size_t>(plan.pp);
  const auto counts = counted(ranks, plan.pp);
  all.memory.resize(stages);
  all.peak.resize(stages);
  all.traffic.resize(stages);
  for (const RankMeasurement& rank : ranks) {
    const auto p = static_cast<std::size_t>(rank.pipeline_rank);
    for (std::size_t k = 0; k < rank.peaks.size(); ++k)
      all.memory[p][k] = std::max(all.memory[p][k], rank.peaks[k]);
    all.peak[p] = std::max(all.peak[p], rank.peak);
    all.pace += rank.pace / static_cast<double>(ranks.size());
    const auto bytes = [same = counts[p]](std::int64_t n) {
      return costmodel::Bytes(static_cast<double>(n) / same);
    };
    const TrafficCount& t = rank.traffic;
    all.traffic[p] += {bytes(t.all_reduce), bytes(t.all_gather), bytes(t.reduce_scatter),
                       bytes(t.all_to_all), bytes(t.send)};
  }
}

}  // namespace

std::vector<RankMeasurement> gather_measurements(Transport& transport, const RankMeasurement& own) {
  if (transport.rank() != 0) {
    deliver(transport, own);
    return {};
  }
  std::vector<RankMeasurement> all{own};
  for (int rank = 1; rank < transport.size(); ++rank) all.push_back(received(transport, rank));
  return all;
}

RunSummary summarise(const std::vector<RankMeasurement>& ranks, const ParallelPlan& plan,
                     std::int64_t tokens_per_batch) {
  RunSummary all;
  const std::size_t iterations = ranks.front().iterations.size();
  std::vector<Seconds> times(iterations);
  all.loss.resize(iterations);
  const auto pipelines = pipelines_of(plan, 0);  // only their sizes are needed
  for (const RankMeasurement& rank : ranks) {
    const Pipeline& pipeline = pipeline_of_stage(pipelines, rank.pipeline_rank);
    const ParallelPlan& own = pipeline.plan;
    const int last =
        pipeline.first_stage + costmodel::rank_of(own.schedule, own.pp, own.virtual_stages() - 1);
    for (std::size_t i = 0; i < iterations; ++i) {
      times[i] = max(times[i], rank.iterations[i]);
      // Every tensor rank has the complete loss.
      if (rank.pipeline_rank == last)
        all.loss[i] += rank.loss_sums[i] / own.tp / static_cast<double>(tokens_per_batch);
    }
  }
  if (iterations > 1) times.erase(times.begin());
  all.iteration = median(times);
  all.loss_scale = ranks.front().loss_scale;
  all.skipped = ranks.front().skipped;
  mean_stages(ranks, plan, all);
  count_bytes(ranks, plan, all);
  all.timeline.ranks = plan.pp;
  std::vector<bool> shown(static_cast<std::size_t>(plan.pp), false);
  for (const RankMeasurement& rank : ranks) {
    auto seen = shown[static_cast<std::size_t>(rank.pipeline_rank)];
    if (seen) continue;
    seen = true;
    add_events(rank, all.timeline);
  }
  std::ranges::stable_sort(all.timeline.events,
                           [](const auto& a, const auto& b) { return a.rank < b.rank; });
  all.bubble_fraction = bubble_of(all.timeline, pipelines);
  return all;
}

Timeline timeline_of(const std::vector<RankMeasurement>& ranks, int pipeline_ranks) {
  Timeline timeline{pipeline_ranks, {}};
  for (const RankMeasurement& rank : ranks) add_actions(rank, timeline);
  return timeline;
}

void summarise_stages(const ParallelPlan& plan, std::int64_t micro_batches, bool apart,
                      RunSummary& summary) {
  const auto m = static_cast<double>(micro_batches);
  summary.stage_forward.assign(static_cast<std::size_t>(plan.virtual_stages()), Seconds(0));
  summary.stage_backward = summary.stage_forward;
  for (const costmodel::Event& event : summary.timeline.events) {
    if (event.stream != costmodel::Stream::compute) continue;
    std::size_t digits = 0;  // "12F3"
    const auto stage = static_cast<std::size_t>(std::stoi(event.name, &digits));
    auto& times = event.name[digits] == 'F' ? summary.stage_forward : summary.stage_backward;
    times[stage] += (event.end - event.start) / m;
  }
  summary.bubble_fraction = bubble_fraction(summary.timeline, apart);
}

std::string loss_warning(const std::vector<double>& losses) {
  const auto bad = std::ranges::find_if(losses, [](double loss) { return !std::isfinite(loss); });
  if (bad == losses.end()) return {};
  return fmt::format("warning: the loss is {} from iteration {} on", *bad,
                     bad - losses.begin() + 1);
}

std::uint64_t checksum(const std::vector<double>& losses) {
  std::uint64_t hash = 14695981039346656037U;
  for (const double loss : losses) {
    const auto bits = std::bit_cast<std::uint64_t>(loss);
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ ((bits >> (8 * byte)) & 0xff)) * 1099511628211U;
  }
  return hash;
}

}  // namespace runtime
