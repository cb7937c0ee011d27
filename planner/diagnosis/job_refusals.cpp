#include "planner/diagnosis/job_refusals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The highest dense rate of a device for a scenario's precision. Products of fp32 may run in TF32,
// whose peak is in no file: it is below that of 16 bits.
FlopsPerSecond peak_rate(const Scenario& s) {
  const DeviceSpec& device = s.cluster.device;
  const auto own = device.peak_of(s.training.precision);
  const auto narrow = device.peak_of(Precision::bf16);
  return s.training.precision == Precision::fp32 && narrow > own ? narrow : own;
}

std::string per_cent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// The single changes of the scenario with which a rate of `share` of the peak would be possible.
std::string possible_with(const Scenario& s, double share) {
  constexpr double reached = 0.6;  // of the peak, in the best published runs
  constexpr double most_devices = 1e6;
  const double times = std::exp2(std::ceil(std::log2(share / reached)));
  const double devices = static_cast<double>(s.cluster.devices) * times;
  std::string ways;
  if (devices <= most_devices)
    ways += fmt::format("{} devices, ", format_integer(std::llround(devices)));
  for (const auto& [what, n] :
       {std::pair{"sequences", s.training.tokens()}, {"a global batch", s.training.global_batch}}) {
    const auto part = static_cast<std::int64_t>(static_cast<double>(n) / times);
    if (part >= 1) ways += fmt::format("{} of {}, ", what, format_integer(part));
  }
  if (ways.empty())
    return "No change of one of these goes so far: the log's times are of another unit.";
  return fmt::format("One of these would make it possible: {}a smaller model.", ways);
}

// `explained`: the scenario's own arithmetic is another job's.
void refuse_rate(const Scenario& s, const Estimate& e, const TrainingLog& log, bool explained,
                 std::vector<Refusal>& list) {
  const FlopsPerSecond peak = peak_rate(s);
  const double time = log.pace.median.value * static_cast<double>(s.cluster.devices);
  if (peak.value <= 0 || time <= 0) return;
  const double needed = explained ? 0 : e.causal_model_flops.value / time;
  const double printed = log.flops_per_s_per_device;
  const double rate = std::max(needed, printed);
  // Above every published run: 65 % of the dense peak with attention halved.
  constexpr double published = 0.7;
  if (rate > published * peak.value && rate <= peak.value && log.pace.median < e.interval.low) {
    list.push_back({"above-published",
                    fmt::format("the log means {:.0f} TFLOP/s a device, {} of its peak, above "
                                "every published run",
                                rate / 1e12, per_cent(rate / peak.value)),
                    "Model, sequence, batch or devices of the scenario are hardly the job's."});
  }
  if (rate <= peak.value) return;
  list.push_back({"above-peak",
                  fmt::format("no {} can do this: {:.0f} TFLOP/s, {} of its peak of {:.0f}{}",
                              s.cluster.device.title, rate / 1e12, per_cent(rate / peak.value),
                              peak.value / 1e12,
                              printed > needed ? ", by the log's own figure"
                                               : ", for the scenario's model, "
                                                 "batch and devices"),
                  "Model, sequence, batch or devices of the scenario are not the job's. " +
                      possible_with(s, rate / peak.value)});
}

void refuse_model(const Scenario& s, const Estimate& e, const TrainingLog& log,
                  std::vector<Refusal>& list) {
  const auto keys = std::to_array<std::pair<std::string_view, std::int64_t>>(
      {{"model.layers", s.model.layers},
       {"model.hidden", s.model.hidden},
       {"model.heads", s.model.heads},
       {"model.experts", s.model.experts}});
  std::string differs;
  const auto add = [&](std::string_view what, const std::string& logged, const std::string& own) {
    differs += fmt::format("{}{} {} by the log, {} by the scenario", differs.empty() ? "" : "; ",
                           what, logged, own);
  };
  for (const auto& [key, own] : keys) {
    const std::string* logged = log.stated(key);
    if (logged != nullptr && *logged != std::to_string(own) && *logged != "none")
      add(key, *logged, std::to_string(own));
  }
  constexpr double same_within = 1.3;
  const auto near = [&](double own) {
    return own > 0 && log.parameters < own * same_within && log.parameters > own / same_within;
  };
  // The Trainer counts a rank's shard where FSDP shards parameters.
  const double shards = e.plan.even() && e.plan.zero >= 2 ? e.plan.shards() : 1;
  const bool of_this = near(e.parameters) || near(e.trained_parameters) ||
                       near(e.parameters / shards) || near(e.trained_parameters / shards);
  if (log.parameters > 0 && !of_this) {
    add("parameters", fmt::format("{:.3g} B", log.parameters / 1e9),
        fmt::format("{:.3g} B", e.parameters / 1e9));
  }
  const double each = e.parameters / (e.plan.tp * e.plan.pp);  // more or less, by the stage
  constexpr double by_stage = 2;
  if (log.rank_parameters > 0 && s.model.experts == 0 && e.plan.even() &&
      std::abs(std::log(log.rank_parameters / each)) > std::log(by_stage)) {
    add("parameters of a rank", fmt::format("{:.3g} B", log.rank_parameters / 1e9),
        fmt::format("{:.3g} B", each / 1e9));
  }
  if (differs.empty()) return;
  list.push_back({"other-job", "the log is of another model: " + differs,
                  "Give the log of this job, or the scenario of that one."});
}

// What a log works out of its time, per device: the arithmetic of one iteration.
void refuse_flops(const Scenario& s, const Estimate& e, const TrainingLog& log,
                  std::vector<Refusal>& list) {
  if (log.flops_per_s_per_device <= 0 || !list.empty()) return;
  const auto devices = static_cast<double>(s.cluster.devices);
  const double counted = log.flops_per_s_per_device * log.pace.median.value * devices;
  // Frameworks halve attention or not, count recomputation or not, leave small parts out.
  const double least = 0.65 * e.causal_model_flops.value;
  const double most = 1.5 * std::max(e.model_flops.value, e.hardware_flops.value);
  if (counted >= least && counted <= most) return;
  list.push_back({"other-job",
                  fmt::format("the log counts {:.3g} PFLOP an iteration, the scenario has {:.3g}",
                              counted / 1e15, e.model_flops.value / 1e15),
                  "Model, sequence, batch or devices of the scenario are not the job's."});
}

// Frameworks whose logs stand for one another's jobs; "" for one that prints no lines of its own.
std::string_view family_of(std::string_view framework) {
  // In this order: Megatron-DeepSpeed and GPT-NeoX print DeepSpeed's lines.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> families{
      {{"torchtitan", "torchtitan"},
       {"nanotron", "nanotron"},
       {"Composer", "llm-foundry"},
       {"llm-foundry", "llm-foundry"},
       {"OLMo", "OLMo"},
       {"DeepSpeed", "DeepSpeed"},
       {"GPT-NeoX", "DeepSpeed"},
       {"Megatron", "Megatron-LM"},
       {"NeMo", "Megatron-LM"}}};
  for (const auto& [word, family] : families)
    if (framework.find(word) != std::string_view::npos) return family;
  return "";
}

// Megatron-DeepSpeed's jobs are described as Megatron-LM's too, so that these two differ less.
bool related(std::string_view a, std::string_view b) {
  const auto is_either = [](std::string_view family) {
    return family.empty() || family == "DeepSpeed" || family == "Megatron-LM";
  };
  return a == b || (is_either(a) && is_either(b));
}

// Of one job's scenario and another one's log both the framework and a setting differ.
bool other_framework(const Scenario& s, const TrainingLog& log) {
  return !related(family_of(s.training.stack.framework), family_of(log.framework));
}

// Lines of a framework that the scenario's stack does not print, with a time that is far from the
// stack's.
void refuse_stranger(const Scenario& s, const Estimate& e, const TrainingLog& log,
                     std::vector<Refusal>& list) {
  const auto own = family_of(s.training.stack.framework), logged = family_of(log.framework);
  constexpr double far = 1.5;  // beyond the interval, which another stack may leave
  if (!list.empty() || own.empty() || logged.empty() || own == logged) return;
  if (log.pace.median >= e.interval.low && log.pace.median <= e.interval.high * far) return;
  list.push_back(
      {"other-job",
       fmt::format("the log has the lines of {} and the scenario the stack of {}, and its "
                   "iterations take {:.3g} times the {} predicted",
                   log.framework, s.training.stack.framework, log.pace.median / e.iteration,
                   format_seconds(e.iteration)),
       "Give the log of this job, or set training.stack to the framework that printed it."});
}

void refuse_settings(const std::vector<Contradiction>& contradictions, bool explained,
                     std::vector<Refusal>& list) {
  std::string differs, mended;
  bool size = false;  // of the job, which no fault changes
  for (const Contradiction& c : contradictions) {
    differs += fmt::format("{}{} {} by the log, {} by the scenario", differs.empty() ? "" : "; ",
                           c.key, c.log, c.scenario);
    mended += fmt::format(" --set {}={}", c.key, c.log);
    size |= c.key == "cluster.devices" || c.key == "training.global_batch" ||
            c.key == "training.sequence";
  }
  if (differs.empty() || (explained && !size)) return;
  list.push_back({"other-job", "the log is of another job: " + differs,
                  explained ? "Mend the scenario first; with" + mended +
                                  " the time measured is about the one predicted."
                            : "Mend the scenario first: what its prediction would be held against "
                              "is another job's time. Try" +
                                  mended + "."});
}

void refuse_speed(const Scenario& s, const Estimate& e, const TrainingLog& log,
                  std::vector<Refusal>& list) {
  constexpr double beyond = 0.75;  // of the lower end of the interval
  const double least = e.interval.low.value * beyond;
  if (!list.empty() || log.pace.median.value <= 0 || log.pace.median.value > least) return;
  const double share =
      e.causal_model_flops.value /
      (log.pace.median.value * static_cast<double>(s.cluster.devices) * peak_rate(s).value);
  list.push_back(
      {"too-fast",
       fmt::format("an iteration takes {}, {:.2g} times as fast as the {} predicted, of which the "
                   "interval begins at {}; it would be {} of the devices' peak",
                   format_seconds(log.pace.median), e.iteration / log.pace.median,
                   format_seconds(e.iteration), format_seconds(e.interval.low), per_cent(share)),
       "This log is not this scenario's, or the scenario asks for more than the job does (batch, "
       "sequence, recomputation, precision)."});
}

void refuse_few(const TrainingLog& log, std::vector<Refusal>& list) {
  constexpr int enough = 3;
  const int lines = log.pace.counted + (log.stamped ? 1 : 0);  // two stamps are one time
  if (lines >= enough || log.averaged >= enough) return;
  list.push_back({"too-few-iterations",
                  fmt::format("{} of the log's lines {} an iteration after the warm-up: that "
                              "shows nothing of the job's pace",
                              log.pace.counted, log.pace.counted == 1 ? "is" : "are"),
                  "Give the log of twenty iterations or more."});
}

}  // namespace

Refusal unexplained(const Estimate& e, const TrainingLog& log) {
  return {"unexplained",
          fmt::format("an iteration takes {}, {:.3g} times the {} predicted, and nothing that this "
                      "program knows makes this job so",
                      format_seconds(log.pace.median), log.pace.median / e.iteration,
                      format_seconds(e.iteration)),
          "See whether this is this job's log; if it is, profile one iteration (nsys, "
          "torch.profiler) and compare it with `shardplan simulate --trace`."};
}

std::optional<Refusal> other_memory(const TrainingLog& log, const PredictedJob& likeliest,
                                    std::string_view cause) {
  // Far beyond what a prediction is off by; a rank of a lean stage may be the one that prints.
  constexpr double more = 1.8, less = 0.5;
  const bool allocated = log.allocated.value > 0;
  const Bytes held = allocated ? log.allocated : log.reserved;
  const Bytes expected = allocated ? likeliest.allocated : likeliest.reserved;
  if (held.value <= 0 || expected.value <= 0) return {};
  // What an allocator keeps beyond what is in use is nobody's prediction.
  if (held > expected * less && (!allocated || held < expected * more)) return {};
  return Refusal{"other-job",
                 fmt::format("the log has {} {} on a device, where the likeliest cause, {}, would "
                             "leave {}",
                             format_bytes(held), allocated ? "allocated" : "reserved", cause,
                             format_bytes(expected)),
                 "See whether this is this job's log: model, micro-batch, sharding and "
                 "recomputation decide memory."};
}

std::vector<Refusal> refusals_of(const Scenario& s, const Estimate& e, const TrainingLog& log,
                                 const std::vector<Contradiction>& contradictions, bool explained) {
  std::vector<Refusal> list;
  if (log.iterations.empty()) return list;
  refuse_model(s, e, log, list);
  refuse_rate(s, e, log, explained, list);
  explained = explained && !other_framework(s, log);
  refuse_settings(contradictions, explained, list);
  if (!explained) {
    refuse_flops(s, e, log, list);
    refuse_speed(s, e, log, list);
    refuse_stranger(s, e, log, list);
  }
  refuse_few(log, list);
  return list;
}

}  // namespace planner
