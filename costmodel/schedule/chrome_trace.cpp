#include "costmodel/schedule/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/schedule/held_over_time.hpp"
#include "costmodel/schedule/trace_slices.hpp"

namespace costmodel {

namespace {

// The pipeline of each rank: one begins at a rank with stage 0 of micro-batch 0; in a two-way one
// the last rank has stage 0 too, of others. They do not send to one another.
std::vector<int> pipelines_by_rank(const std::vector<Slice>& slices, int ranks) {
  std::vector<int> pipeline(static_cast<std::size_t>(std::max(ranks, 0)), 0);
  for (const Slice& slice : slices) {
    if (!slice.computes()) continue;
    for (const Action& action : slice.actions()) {
      if (action.stage == 0 && action.micro_batch == 0)
        pipeline[static_cast<std::size_t>(slice.event->rank)] = 1;
    }
  }
  for (std::size_t r = 1; r < pipeline.size(); ++r) pipeline[r] += pipeline[r - 1];
  return pipeline;
}

std::string json_value(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

// Lines of a JSON array.
class TraceLines {
 public:
  void add(const std::string& event) {
    text_ += text_.empty() ? "" : ",\n";
    text_ += event;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_metadata(int pid, std::optional<int> tid, std::string_view what, const std::string& value,
                  TraceLines& lines) {
  lines.add(fmt::format(R"({{"name":"{}","ph":"M","pid":{}{},"args":{{{}}}}})", what, pid,
                        tid ? fmt::format(",\"tid\":{}", *tid) : "", value));
}

void add_names(const std::vector<Slice>& slices, int ranks, TraceLines& lines) {
  for (int rank = 0; rank < ranks; ++rank) {
    add_metadata(rank, {}, "process_name", fmt::format(R"("name":"pipeline rank {}")", rank),
                 lines);
    add_metadata(rank, {}, "process_sort_index", fmt::format(R"("sort_index":{})", rank), lines);
  }
  std::vector<std::pair<int, const Slice*>> threads;  // rank, and a slice of each
  for (const Slice& slice : slices) {
    const int rank = slice.event->rank;
    const bool known = std::any_of(threads.rbegin(), threads.rend(), [&](const auto& thread) {
      return thread.first == rank && thread.second->thread() == slice.thread();
    });
    if (known) continue;
    threads.emplace_back(rank, &slice);
    const std::string number = slice.lane > 0 ? fmt::format(" ({})", slice.lane + 1) : "";
    add_metadata(rank, slice.thread(), "thread_name",
                 fmt::format(R"("name":"{}{}")", name_of(slice.event->stream), number), lines);
    // Lanes of a stream below one another: a stream has far fewer.
    constexpr int most_lanes = 1000;
    const int place = most_lanes * static_cast<int>(slice.event->stream) + slice.lane;
    add_metadata(rank, slice.thread(), "thread_sort_index",
                 fmt::format(R"("sort_index":{})", place), lines);
  }
}

void add_slices(const std::vector<Slice>& slices, TraceLines& lines) {
  const bool split = std::ranges::any_of(slices, [](const Slice& slice) {
    const std::vector<Action> cell = slice.actions();
    return std::ranges::any_of(
        cell, [](const Action& action) { return action.kind == ActionKind::weight_gradient; });
  });
  for (const Slice& slice : slices) {
    std::string name;
    for (const Action& action : slice.actions())
      name += (name.empty() ? "" : " + ") + in_words(action, split);
    if (name.empty()) name = slice.event->name;
    lines.add(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{}}})",
                          json_string(name), name_of(slice.event->stream),
                          as_microseconds(slice.start), as_microseconds(slice.end - slice.start),
                          slice.event->rank, slice.thread()));
  }
}

// The computation that a transfer's result is for, or that a slice is: pipeline, whether backward,
// stage, micro-batch.
using Purpose = std::tuple<int, bool, int, int>;

std::optional<Purpose> purpose_of(const Action& action, int pipeline) {
  const int stage = action.stage, micro_batch = action.micro_batch;
  switch (action.kind) {
    case ActionKind::forward: return Purpose{pipeline, false, stage, micro_batch};
    case ActionKind::backward: return Purpose{pipeline, true, stage, micro_batch};
    case ActionKind::send_forward: return Purpose{pipeline, false, stage + 1, micro_batch};
    case ActionKind::send_backward: return Purpose{pipeline, true, stage - 1, micro_batch};
    case ActionKind::recv_forward:
    case ActionKind::recv_backward:
    case ActionKind::weight_gradient: return {};
  }
  return {};
}

void add_arrow(const Slice& send, const Slice& use, int id, TraceLines& lines) {
  const bool forward = send.action->kind == ActionKind::send_forward;
  const auto end = [&](const Slice& at, std::string_view phase) {
    lines.add(
        fmt::format(R"({{"name":"{}","cat":"transfer","ph":{},"id":{},"ts":{},"pid":{},"tid":{}}})",
                    forward ? "activations" : "gradients", phase, id, as_microseconds(at.start),
                    at.event->rank, at.thread()));
  };
  end(send, R"("s")");
  end(use, R"("f","bp":"e")");  // bound to the slice that begins there, not to the next one
}

// Measured on clocks that differ, a result may be used before it is sent: no arrow then.
void add_arrows(const std::vector<Slice>& slices, const std::vector<int>& pipelines,
                TraceLines& lines) {
  const auto pipeline_of = [&](const Slice& slice) {
    return pipelines[static_cast<std::size_t>(slice.event->rank)];
  };
  std::vector<std::pair<Purpose, const Slice*>> uses;
  for (const Slice& slice : slices) {
    if (!slice.computes()) continue;
    for (const Action& action : slice.actions()) {
      if (const auto purpose = purpose_of(action, pipeline_of(slice)))
        uses.emplace_back(*purpose, &slice);
    }
  }
  const auto its_purpose = [](const auto& use) { return use.first; };
  std::ranges::sort(uses, {}, its_purpose);
  int id = 0;
  for (const Slice& slice : slices) {
    if (slice.computes() || !slice.action) continue;
    const auto purpose = purpose_of(*slice.action, pipeline_of(slice));
    if (!purpose) continue;
    const auto use = std::ranges::lower_bound(uses, *purpose, {}, its_purpose);
    if (use == uses.end() || use->first != *purpose || use->second->start < slice.start) continue;
    add_arrow(slice, *use->second, ++id, lines);
  }
}

void add_counters(std::span<const Slice> slices, const std::vector<RankMemory>& memory,
                  TraceLines& lines) {
  const auto count = [&lines](int rank, Nanoseconds at, std::string_view name,
                              std::string_view unit, double value) {
    lines.add(fmt::format(R"({{"name":"{}","ph":"C","ts":{},"pid":{},"args":{{"{}":{}}}}})", name,
                          as_microseconds(at), rank, unit, json_value(value)));
  };
  for (std::size_t from = 0, to = 0; from < slices.size(); from = to) {
    const int rank = slices[from].event->rank;
    while (to < slices.size() && slices[to].event->rank == rank) ++to;
    const bool known = static_cast<std::size_t>(rank) < memory.size();
    const RankMemory own = known ? memory[static_cast<std::size_t>(rank)] : RankMemory{};
    for (const HeldStep& step : held_over_time(slices.subspan(from, to - from), own)) {
      count(rank, step.at, "in flight", "micro-batches", step.micro_batches);
      if (!known) continue;
      const double bytes = std::round(step.bytes.value);  // whole ones
      count(rank, step.at, "memory", "GiB", bytes / (1 << 30));
    }
  }
}

}  // namespace

std::string left_out_of_trace(const Timeline& timeline) {
  std::string told;
  if (timeline.ranks > most_traced_ranks) {
    told = fmt::format("the trace shows pipeline ranks 0 to {} of {}", most_traced_ranks - 1,
                       timeline.ranks);
  }
  const auto slices = std::ranges::count_if(
      timeline.events, [](const Event& event) { return event.rank < most_traced_ranks; });
  if (static_cast<std::size_t>(slices) <= most_annotated_slices) return told;
  return fmt::format("{}{}a trace of more than {} slices has neither arrows nor counters", told,
                     told.empty() ? "" : "; ",
                     format_integer(static_cast<std::int64_t>(most_annotated_slices)));
}

std::string to_chrome_trace(const Timeline& timeline, const IterationFigures& iteration) {
  const int ranks = std::min(timeline.ranks, most_traced_ranks);
  const std::vector<Slice> slices = slices_of(timeline, ranks);
  TraceLines lines;
  add_names(slices, ranks, lines);
  add_slices(slices, lines);
  if (slices.size() <= most_annotated_slices) {
    add_arrows(slices, pipelines_by_rank(slices, ranks), lines);
    add_counters(slices, timeline.memory, lines);
  }
  const std::string left_out = left_out_of_trace(timeline);
  return fmt::format(
      "{{\"traceEvents\":[\n{}\n],\"displayTimeUnit\":\"ms\",\"iteration_s\":{},"
      "\"bubble_fraction\":{}{}}}\n",
      lines.text(), json_value(iteration.time.value), json_value(iteration.bubble_fraction),
      left_out.empty() ? "" : fmt::format(R"(,"otherData":{{"note":{}}})", json_string(left_out)));
}

}  // namespace costmodel
