#include "planner/logs/log_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "planner/logs/log_line.hpp"

namespace planner {

using namespace costmodel;

namespace {

bool holds(std::string_view line, std::string_view what) {
  return line.find(what) != std::string_view::npos;
}

void say(LogDraft& draft, std::string_view key, std::string value) {
  for (Saying& had : draft.log.said) {
    if (had.key != key) continue;
    had.value = std::move(value);
    return;
  }
  draft.log.said.push_back({std::string(key), std::move(value)});
}

constexpr double largest = 1e12;  // number in a log that is taken for one

// The number of an iteration.
std::int64_t counted(std::optional<double> number) {
  return number && *number > 0 && *number < largest ? static_cast<std::int64_t>(*number) : 0;
}

void say_number(LogDraft& draft, std::string_view key, std::optional<double> number) {
  if (number && *number >= 1 && *number < largest) say(draft, key, fmt::format("{:.0f}", *number));
}

// A word of a framework and the key of a scenario for it.
struct LogWord {
  std::string_view theirs, ours;
};

void name_framework(LogDraft& draft, std::string_view name) {
  if (draft.log.framework.empty()) draft.log.framework = name;
}

void raise(Bytes& highest, std::optional<double> bytes) {
  if (bytes && *bytes < 1e18) highest = max(highest, Bytes(*bytes));
}

std::optional<double> scaled(std::optional<double> number, double factor) {
  if (number) *number *= factor;
  return number;
}

constexpr double mebi = 1024.0 * 1024, gibi = 1024 * mebi;

// Megatron-LM's line, and Megatron-Bridge's.
bool read_megatron(std::string_view line, LogDraft& draft) {
  if (const auto ms = number_after(line, "elapsed time per iteration (ms):")) {
    name_framework(draft, holds(line, "samples/sec:") ? "Megatron-DeepSpeed" : "Megatron-LM");
    IterationLine& it = draft.iterations.emplace_back();
    it.number = counted(number_after(line, "iteration"));
    it.seconds = *ms / 1e3;
    say_number(draft, "training.global_batch", number_after(line, "global batch size:"));
    return true;
  }
  if (holds(line, "memory (MB) | allocated:")) {
    raise(draft.log.allocated, scaled(number_after(line, "max allocated:"), mebi));
    raise(draft.log.reserved, scaled(number_after(line, "max reserved:"), mebi));
    return true;
  }
  if (holds(line, "Step Time :") && holds(line, "TFLOP/s/GPU")) {
    draft.log.framework = "Megatron-Bridge";
    return true;
  }
  if (!holds(line, "using world size:")) return false;
  constexpr std::array<LogWord, 4> sizes{{{"using world size:", "cluster.devices"},
                                          {"tensor-model-parallel size:", "plan.tp"},
                                          {"pipeline-model-parallel size:", "plan.pp"},
                                          {"context-parallel size:", "plan.cp"}}};
  for (const LogWord& size : sizes) say_number(draft, size.ours, number_after(line, size.theirs));
  return true;
}

bool read_nemo(std::string_view line, LogDraft& draft) {
  auto seconds = number_after(line, "train_step_timing in s:");
  if (!seconds) seconds = number_after(line, "train_step_timing in s=");
  if (!seconds) return false;
  name_framework(draft, "NeMo");
  auto number = number_after(line, "global_step:");
  if (!number) number = number_after(line, "global_step=");
  if (!number) number = number_after(line, "iteration");
  draft.iterations.push_back({.number = counted(number), .seconds = seconds});
  say_number(draft, "training.global_batch", number_after(line, "global_batch_size:"));
  return true;
}

// "['pp', 'dp_shard', 'tp'], [2, 8, 4]"
void read_device_mesh(std::string_view line, LogDraft& draft) {
  const auto names_end = line.find("], [");
  if (names_end == std::string_view::npos) return;
  std::string_view list = line.substr(names_end + 3);
  const auto sizes = numbers_of(list.substr(0, list.find(']') + 1));
  std::vector<std::string> names;
  for (auto at = line.find('\''); at < names_end; at = line.find('\'', at + 1)) {
    const auto end = line.find('\'', at + 1);
    if (end == std::string_view::npos) return;
    names.emplace_back(line.substr(at + 1, end - at - 1));
    at = end;
  }
  if (names.size() != sizes.size()) return;
  double data = 1;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].starts_with("dp")) data *= sizes[i];
    if (names[i] == "pp" || names[i] == "tp" || names[i] == "cp")
      say_number(draft, "plan." + names[i], sizes[i]);
  }
  say_number(draft, "plan.dp", data);
}

bool read_torchtitan(std::string_view line, LogDraft& draft) {
  const auto tokens = number_after(line, "tps:");
  if (tokens && holds(line, "step:") && holds(line, "memory:")) {
    name_framework(draft, "torchtitan");
    draft.iterations.push_back({.number = counted(number_after(line, "step:")),
                                .stamp = stamp_of(line),
                                .tokens_per_s_per_device = *tokens});
    raise(draft.log.reserved, scaled(number_after(line, "memory:"), gibi));
    return true;
  }
  if (holds(line, "-D device mesh with [")) {
    read_device_mesh(line, draft);
    return true;
  }
  if (holds(line, "activation checkpointing to the model")) {
    for (const std::string_view kind : {"selective", "full"})
      if (holds(line, kind)) say(draft, "plan.recompute", std::string(kind));
    return true;
  }
  if (!holds(line, "Training starts at step")) return false;
  say_number(draft, "plan.micro_batch", number_after(line, "local batch size"));
  say_number(draft, "training.global_batch", number_after(line, "global batch size"));
  say_number(draft, "training.sequence", number_after(line, "sequence length"));
  return true;
}

bool read_deepspeed(std::string_view line, LogDraft& draft) {
  auto rate = number_after(line, "CurrSamplesPerSec=");
  if (!rate) rate = number_after(line, " SamplesPerSec=");
  if (!rate) return false;
  name_framework(draft, "DeepSpeed");
  auto number = number_after(line, "global_step=");
  if (!number) {  // "[timer.py:189:stop] 0/40, SamplesPerSec=..."
    const auto slash = line.rfind('/', line.find("SamplesPerSec="));
    if (slash != std::string_view::npos) number = number_after(line.substr(slash), "/");
  }
  draft.iterations.push_back(
      {.number = counted(number), .stamp = stamp_of(line), .sequences_per_s = *rate});
  raise(draft.log.allocated, scaled(number_after(line, "MaxMemAllocated="), gibi));
  return true;
}

bool read_nanotron(std::string_view line, LogDraft& draft) {
  const auto ms = number_after(line, "elapsed_time_per_iteration_ms:");
  if (!ms) return false;
  name_framework(draft, "nanotron");
  draft.iterations.push_back(
      {.number = counted(number_after(line, "iteration:")),
       .seconds = *ms / 1e3,
       .tokens_per_s_per_device = number_after(line, "tokens_per_sec_per_gpu:").value_or(0)});
  raise(draft.log.reserved, number_after(line, "cuda_max_memory_reserved:"));
  say_number(draft, "training.global_batch", number_after(line, "global_batch_size:"));
  return true;
}

bool read_composer(std::string_view line, LogDraft& draft) {
  if (const auto batch = number_after(line, "[batch=")) {
    draft.composer_batch = counted(batch);
    return true;
  }
  if (const auto rate = number_after(line, "Train throughput/batches_per_sec:")) {
    name_framework(draft, "llm-foundry");
    if (*rate > 0)
      draft.iterations.push_back({.number = draft.composer_batch, .seconds = 1 / *rate});
    return true;
  }
  raise(draft.log.reserved, scaled(number_after(line, "Train memory/peak_reserved_mem:"), 1e9));
  raise(draft.log.allocated, scaled(number_after(line, "Train memory/peak_allocated_mem:"), 1e9));
  say_number(draft, "plan.micro_batch",
             number_after(line, "Train trainer/device_train_microbatch_size:"));
  return holds(line, "Train memory/") || holds(line, "Train trainer/");
}

struct TimerName {
  std::string_view name;
  JobPart part;
};
// Of Megatron-LM (core/timers.py and its callers, old words too) and of DeepSpeed's
// wall_clock_breakdown. bwd_inner, not bwd: that holds the reduction.
constexpr std::array timer_names{
    TimerName{"forward-backward", JobPart::forward_backward},
    TimerName{"forward-compute", JobPart::forward},
    TimerName{"backward-compute", JobPart::backward},
    TimerName{"batch-generator", JobPart::data},
    TimerName{"all-grads-sync", JobPart::gradient_sync},
    TimerName{"grads-all-reduce", JobPart::gradient_sync},
    TimerName{"backward-params-all-reduce", JobPart::gradient_sync},
    TimerName{"optimizer", JobPart::optimizer},
    TimerName{"fwd", JobPart::forward},
    TimerName{"bwd_inner", JobPart::backward},
    TimerName{"bwd_allreduce", JobPart::gradient_sync},
    TimerName{"step", JobPart::optimizer},
    TimerName{"forward", JobPart::forward},
    TimerName{"backward_inner", JobPart::backward},
    TimerName{"backward_allreduce", JobPart::gradient_sync},
};

void read_timer(std::string_view name, const std::vector<double>& ms, LogDraft& draft) {
  const auto out_of_reach = [](double one) { return one < 0 || one > largest; };
  if (ms.empty() || ms.size() > 2 || std::ranges::any_of(ms, out_of_reach)) return;
  const auto* const known = std::ranges::find(timer_names, name, &TimerName::name);
  if (known == timer_names.end()) return;
  draft.parts.push_back({known->part, ms.front() / 1e3, ms.back() / 1e3});
}

// Arguments of Megatron-LM, and of DeepSpeed's config: "True" is "true", "None" "none".
constexpr std::array arguments{
    LogWord{"world_size", "cluster.devices"},
    LogWord{"tensor_model_parallel_size", "plan.tp"},
    LogWord{"pipeline_model_parallel_size", "plan.pp"},
    LogWord{"context_parallel_size", "plan.cp"},
    LogWord{"expert_model_parallel_size", "plan.ep"},
    LogWord{"virtual_pipeline_model_parallel_size", "plan.vpp"},
    LogWord{"micro_batch_size", "plan.micro_batch"},
    LogWord{"global_batch_size", "training.global_batch"},
    LogWord{"seq_length", "training.sequence"},
    LogWord{"sequence_parallel", "plan.sequence_parallel"},
    LogWord{"recompute_granularity", "plan.recompute"},
    LogWord{"overlap_grad_reduce", "training.overlap.overlap_grad_reduce"},
    LogWord{"overlap_param_gather", "training.overlap.overlap_param_gather"},
    LogWord{"tp_comm_overlap", "training.overlap.tp_comm_overlap"},
    LogWord{"train_batch_size", "training.global_batch"},
    LogWord{"train_micro_batch_size_per_gpu", "plan.micro_batch"},
    LogWord{"zero_optimization_stage", "plan.zero"},
};

void read_argument(const DottedRow& row, LogDraft& draft) {
  if (row.name == "fp8" || row.name == "bf16" || row.name == "fp16") {
    if (row.value != "None" && row.value != "False") say(draft, "training.precision", row.name);
    return;
  }
  const auto* const known = std::ranges::find(arguments, row.name, &LogWord::theirs);
  if (known == arguments.end() || row.value.find(' ') != std::string::npos) return;
  if (known->ours == "plan.vpp" && row.value == "None") return;
  std::string value = row.value;
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  say(draft, known->ours, value);
}

// "time (ms) | forward-compute: 58.16 | ...", of one rank.
bool read_timer_cells(std::string_view line, LogDraft& draft) {
  const auto at = line.find("time (ms) |");
  if (at == std::string_view::npos) return false;
  for (const std::string_view cell : cells_of(line.substr(at))) {
    const auto colon = cell.find(':');
    if (colon != std::string_view::npos)
      read_timer(cell.substr(0, colon), numbers_of(cell.substr(colon + 1)), draft);
  }
  return true;
}

}  // namespace

void read_log_line(std::string_view line, LogDraft& draft) {
  for (const auto read : {read_megatron, read_nemo, read_torchtitan, read_deepspeed, read_nanotron,
                          read_timer_cells, read_composer}) {
    if (read(line, draft)) return;
  }
  if (const auto row = dotted_row(line)) {
    read_timer(row->name, numbers_of(row->value), draft);
    read_argument(*row, draft);
  }
}

std::vector<std::string_view> known_log_lines() {
  return {"Megatron-LM, Megatron-Bridge: 'elapsed time per iteration (ms): ...'",
          "NeMo: 'train_step_timing in s: ...'",
          "torchtitan: 'step: ... memory: ... tps: ...'",
          "DeepSpeed: 'SamplesPerSec=...'",
          "nanotron: 'elapsed_time_per_iteration_ms: ...'",
          "llm-foundry: 'Train throughput/batches_per_sec: ...'"};
}

}  // namespace planner
