#include "planner/report/log_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string pace_text(const TrainingLog& log) {
  const Pace& pace = log.pace;
  if (log.averaged > 0) {
    return fmt::format("{}: a mean over {} iterations, the warm-up among them.", log.framework,
                       format_integer(log.averaged));
  }
  std::string text = fmt::format(
      "{}: {} lines counted, {} of the warm-up left out; spread {:.1f} %; slow ones: {}{}.",
      log.framework, pace.counted, pace.warm_up, 100 * pace.spread, pace.slow.size(),
      pace.period > 0 ? fmt::format(", one every {} iterations", pace.period) : "");
  if (!pace.slow.empty()) {
    const auto worst = std::ranges::max_element(pace.slow, {}, &LoggedIteration::time);
    text +=
        fmt::format(" Slowest: iteration {} with {}.", worst->number, format_seconds(worst->time));
  }
  return text;
}

std::string drift_text(const Pace& pace) {
  if (pace.shape == SeriesShape::growing) {
    return fmt::format("An iteration takes {} more than the one before it: from {} to {}.",
                       format_seconds(Seconds(pace.growth)), format_seconds(pace.early),
                       format_seconds(pace.late));
  }
  if (pace.shape == SeriesShape::stepped) {
    return fmt::format("From iteration {} on it takes {}, {} before.", pace.since,
                       format_seconds(pace.late), format_seconds(pace.early));
  }
  return "";
}

// Ranks that hold more than 5 % more than another.
std::string ranks_text(const TrainingLog& log) {
  if (log.ranks.size() < 2) return "";
  const auto [least, most] = std::ranges::minmax(log.ranks, {}, &RankMemory::allocated);
  constexpr double same = 1.05;
  if (most.allocated.value <= same * least.allocated.value) return "";
  return fmt::format("Rank {} allocates {} at most, rank {} {}.", most.rank,
                     format_bytes(most.allocated), least.rank, format_bytes(least.allocated));
}

}  // namespace

std::string_view sign_text(SignKind kind) {
  constexpr std::array<std::string_view, sign_kind_count> texts{
      "NCCL's network is TCP",
      "NCCL's network is a fabric",
      "NCCL uses one network adapter",
      "the network does not reach device memory",
      "devices of a node do not reach one another's memory",
      "a collective timed out",
      "the allocator gave memory back and asked again",
      "clocks are throttled",
      "a device reports a fault",
      "the data loader is slow",
      "checkpoints are written",
      "the compiler gave up or compiled again",
      "attention fell back to separate kernels",
      "states are offloaded to the host",
      "parameters are in fp32",
      "every launch waits for its kernel",
      "experts are out of balance",
      "the host is short of memory",
      "a straggler is named"};
  return texts[static_cast<std::size_t>(kind)];
}

std::string log_text(const TrainingLog& log, const ReportStyle& style) {
  std::string text = bullet(pace_text(log), style);
  const auto add = [&](const std::string& line) {
    if (!line.empty()) text += bullet(line, style);
  };
  add(drift_text(log.pace));
  if (log.restarts > 0)
    add(fmt::format("The count of iterations went back {} times.", log.restarts));
  for (const LogSign& sign : log.signs) {
    add(fmt::format("Line {}{}: {}. \"{}\"", sign.row,
                    sign.count > 1 ? fmt::format(" and {} more", sign.count - 1) : "",
                    sign_text(sign.kind), escaped(sign.line, style)));
  }
  add(ranks_text(log));
  return text;
}

std::string refusal_text(const std::vector<Refusal>& refusals, const ReportStyle& style) {
  std::string text;
  for (const Refusal& refusal : refusals) {
    text += style.style.bold(escaped("This cannot be judged: " + refusal.what + ".", style)) + "\n";
    text += bullet(refusal.remedy, style);
  }
  return text;
}

std::string out_of_memory_text(const MemoryAnswer& a, const TrainingLog& log) {
  const OutOfMemory& f = a.failed;
  std::string text = f.on_host ? "Out of host memory" : "Out of memory";
  if (f.wanted.value > 0) text += fmt::format(": {} more were wanted", format_bytes(f.wanted));
  const std::string_view where = failed_in_text(f.where);
  if (!where.empty()) text += fmt::format(" {}", where);
  if (f.rank >= 0) text += fmt::format(" on rank {} (pipeline stage {})", f.rank, a.stage);
  if (!log.iterations.empty())
    text += fmt::format(", after iteration {}", log.iterations.back().number);
  if (f.capacity.value > 0) {
    text += fmt::format("; {} of {} were free", format_bytes(f.free), format_bytes(f.capacity));
  }
  return text + ".";
}

namespace {

std::string ledger_text(const MemoryAnswer& a, const Estimate& e) {
  const StageMemory& m =
      e.memory[std::min<std::size_t>(static_cast<std::size_t>(a.stage), e.memory.size() - 1)];
  std::string text = fmt::format(
      "Predicted: {} of {} on stage {}: weights {}, gradients {}, optimizer {}, activations {}, "
      "buffers {}",
      format_bytes(m.total()), format_bytes(e.capacity), a.stage, format_bytes(m.weights),
      format_bytes(m.gradients), format_bytes(m.optimizer), format_bytes(m.activations),
      format_bytes(m.buffers));
  if (a.place.known()) {
    text += a.place.layer.empty()
                ? fmt::format("; most in the optimizer's {}: {}", a.place.pass, a.place.op)
                : fmt::format("; most at {} of a {} layer in the {} pass", a.place.op,
                              a.place.layer, a.place.pass);
  }
  return text + ".";
}

}  // namespace

std::string memory_text(const MemoryAnswer& a, const Estimate& e, const TrainingLog& log,
                        const ReportStyle& style) {
  std::string text = style.style.bold(escaped(out_of_memory_text(a, log), style)) + "\n";
  if (!a.tensor.empty())
    text += bullet(fmt::format("An allocation of that size: {}.", a.tensor), style);
  if (!e.memory.empty()) text += bullet(ledger_text(a, e), style);
  if (a.predicted_fits) {
    text += bullet(fmt::format("The prediction, by which it fits, is too low by {:.0f} % at least; "
                               "the changes below leave room for that.",
                               100 * (a.low_by - 1)),
                   style);
  }
  constexpr double much = 1.0;
  if (a.failed.cached.value > much * a.failed.wanted.value && a.failed.wanted.value > 0) {
    text += bullet(fmt::format("{} are reserved and not allocated: fragments. "
                               "PYTORCH_ALLOC_CONF=expandable_segments:True may suffice.",
                               format_bytes(a.failed.cached)),
                   style);
  }
  text += bullet(a.changes.empty() ? std::string("Do: no change that was tried makes it fit; more "
                                                 "or larger devices.")
                                   : "Do: " + a.changes.front().sentence(),
                 style);
  return text;
}

}  // namespace planner
