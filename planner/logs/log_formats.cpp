#include "planner/logs/log_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "planner/logs/log_line.hpp"
#include "planner/logs/trainer_lines.hpp"

namespace planner {

using namespace costmodel;

void keep_setting(LogDraft& draft, std::string_view key, std::string value) {
  for (LoggedSetting& had : draft.log.settings) {
    if (had.key != key) continue;
    had.value = std::move(value);
    return;
  }
  draft.log.settings.push_back({std::string(key), std::move(value)});
}

constexpr double largest = 1e12;  // number in a log that is taken for one

// The number of an iteration.
std::int64_t iteration_number(std::optional<double> number) {
  return number && *number > 0 && *number < largest ? static_cast<std::int64_t>(*number) : 0;
}

void keep_number(LogDraft& draft, std::string_view key, std::optional<double> number) {
  if (number && *number >= 1 && *number < largest)
    keep_setting(draft, key, fmt::format("{:.0f}", *number));
}

void name_framework(LogDraft& draft, std::string_view name) {
  if (draft.log.framework.empty()) draft.log.framework = name;
}

void raise_to(Bytes& highest, std::optional<double> bytes) {
  if (bytes && *bytes < 1e18) highest = max(highest, Bytes(*bytes));
}

namespace {

// A word of a framework and the key of a scenario for it.
struct LogWord {
  std::string_view theirs, ours;
};

std::optional<double> scaled(std::optional<double> number, double factor) {
  if (number) *number *= factor;
  return number;
}

// Memory of a rank that prints it.
void keep_rank(LogDraft& draft, double rank, std::optional<double> allocated,
               std::optional<double> reserved) {
  constexpr double most_ranks = 1e6;
  constexpr std::size_t most_kept = 4096;
  if (rank < 0 || rank > most_ranks || draft.log.ranks.size() >= most_kept) return;
  const int number = static_cast<int>(rank);
  const auto at = std::ranges::find(draft.log.ranks, number, &RankMemory::rank);
  RankMemory& memory =
      at != draft.log.ranks.end() ? *at : draft.log.ranks.emplace_back(RankMemory{number, {}, {}});
  raise_to(memory.allocated, allocated);
  raise_to(memory.reserved, reserved);
}

// What Megatron-LM prints of the model that it built: "number of parameters on (tensor, pipeline)
// model parallel rank (0, 0): 1012345", ">  padded vocab (size: 50257) with 47 dummy tokens".
bool read_megatron_model(std::string_view line, LogDraft& draft) {
  if (holds(line, "padded vocab (size:")) {
    keep_number(draft, "model.vocab", number_after(line, "padded vocab (size:"));
    return true;
  }
  if (holds(line, "number of parameters on (tensor, pipeline) model parallel rank")) {
    draft.log.rank_parameters = number_after(line, "):").value_or(0);
    return true;
  }
  return false;
}

// Megatron-LM's line, and Megatron-Bridge's.
bool read_megatron(std::string_view line, LogDraft& draft) {
  if (const auto ms = number_after(line, "elapsed time per iteration (ms):")) {
    name_framework(draft, holds(line, "samples/sec:") ? "Megatron-DeepSpeed" : "Megatron-LM");
    IterationLine& it = draft.iterations.emplace_back();
    it.number = iteration_number(number_after(line, "iteration"));
    it.seconds = *ms / 1e3;
    it.sequences_per_s = number_after(line, "samples/sec:").value_or(0);
    it.samples_seen = number_after(line, "consumed samples:").value_or(0);
    const auto rate = number_after(line, "throughput per GPU (TFLOP/s/GPU):");
    if (rate) draft.flops_per_s.push_back(*rate * 1e12);
    keep_number(draft, "training.global_batch", number_after(line, "global batch size:"));
    return true;
  }
  if (holds(line, "memory (MB) | allocated:")) {
    const auto allocated = scaled(number_after(line, "max allocated:"), mebi);
    const auto reserved = scaled(number_after(line, "max reserved:"), mebi);
    raise_to(draft.log.allocated, allocated);
    raise_to(draft.log.reserved, reserved);
    if (const auto rank = number_after(line, "[Rank "))
      keep_rank(draft, *rank, allocated, reserved);
    return true;
  }
  if (holds(line, "Step Time :") && holds(line, "TFLOP/s/GPU")) {
    draft.log.framework = "Megatron-Bridge";
    return true;
  }
  if (!holds(line, "using world size:")) return read_megatron_model(line, draft);
  constexpr std::array<LogWord, 4> sizes{{{"using world size:", "cluster.devices"},
                                          {"tensor-model-parallel size:", "plan.tp"},
                                          {"pipeline-model-parallel size:", "plan.pp"},
                                          {"context-parallel size:", "plan.cp"}}};
  for (const LogWord& size : sizes) keep_number(draft, size.ours, number_after(line, size.theirs));
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
  draft.iterations.push_back({.number = iteration_number(number), .seconds = seconds});
  keep_number(draft, "training.global_batch", number_after(line, "global_batch_size:"));
  raise_to(draft.log.reserved, number_after(line, "max_memory_reserved:"));
  raise_to(draft.log.allocated, number_after(line, "max_memory_allocated:"));
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
      keep_number(draft, "plan." + names[i], sizes[i]);
  }
  keep_number(draft, "plan.dp", data);
}

bool read_torchtitan(std::string_view line, LogDraft& draft) {
  auto tokens = number_after(line, "tps:");
  if (!tokens) tokens = number_after(line, "wps:");  // of 2024
  if (tokens && holds(line, "step:") && holds(line, "memory:")) {
    name_framework(draft, "torchtitan");
    draft.iterations.push_back({.number = iteration_number(number_after(line, "step:")),
                                .stamp = stamp_of(line),
                                .tokens_per_s_per_device = *tokens});
    raise_to(draft.log.reserved, scaled(number_after(line, "memory:"), gibi));
    if (const auto rate = number_after(line, "tflops:")) draft.flops_per_s.push_back(*rate * 1e12);
    return true;
  }
  if (holds(line, "total parameters") && holds(line, " size: ")) {  // "Model llama3 8B size: 8,030"
    draft.log.parameters = number_after(line, " size: ").value_or(0);
    return true;
  }
  if (holds(line, "-D device mesh with [")) {
    read_device_mesh(line, draft);
    return true;
  }
  if (holds(line, "activation checkpointing to the model")) {
    for (const std::string_view kind : {"selective", "full"})
      if (holds(line, kind)) keep_setting(draft, "plan.recompute", std::string(kind));
    return true;
  }
  if (!holds(line, "Training starts at step")) return false;
  keep_number(draft, "plan.micro_batch", number_after(line, "local batch size"));
  keep_number(draft, "training.global_batch", number_after(line, "global batch size"));
  keep_number(draft, "training.sequence", number_after(line, "sequence length"));
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
      {.number = iteration_number(number), .stamp = stamp_of(line), .sequences_per_s = *rate});
  raise_to(draft.log.allocated, scaled(number_after(line, "MaxMemAllocated="), gibi));
  return true;
}

bool read_nanotron(std::string_view line, LogDraft& draft) {
  const auto ms = number_after(line, "elapsed_time_per_iteration_ms:");
  if (!ms) return false;
  name_framework(draft, "nanotron");
  draft.iterations.push_back(
      {.number = iteration_number(number_after(line, "iteration:")),
       .seconds = *ms / 1e3,
       .tokens_per_s_per_device = number_after(line, "tokens_per_sec_per_gpu:").value_or(0)});
  raise_to(draft.log.reserved, number_after(line, "cuda_max_memory_reserved:"));
  keep_number(draft, "training.global_batch", number_after(line, "global_batch_size:"));
  return true;
}

bool read_composer(std::string_view line, LogDraft& draft) {
  if (const auto batch = number_after(line, "[batch=")) {
    draft.record = iteration_number(batch);
    return true;
  }
  if (const auto rate = number_after(line, "Train throughput/batches_per_sec:")) {
    name_framework(draft, "llm-foundry");
    if (*rate > 0) draft.iterations.push_back({.number = draft.record, .seconds = 1 / *rate});
    return true;
  }
  raise_to(draft.log.reserved, scaled(number_after(line, "Train memory/peak_reserved_mem:"), 1e9));
  raise_to(draft.log.allocated,
           scaled(number_after(line, "Train memory/peak_allocated_mem:"), 1e9));
  keep_number(draft, "plan.micro_batch",
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
    TimerName{"backward-backward", JobPart::backward},  // of GPT-NeoX, these three
    TimerName{"backward-allreduce", JobPart::gradient_sync},
    TimerName{"batch generator", JobPart::data},
};

void read_timer(std::string_view name, const std::vector<double>& ms, bool deepspeed,
                LogDraft& draft) {
  const auto out_of_reach = [](double one) { return one < 0 || one > largest; };
  if (ms.empty() || ms.size() > 2 || std::ranges::any_of(ms, out_of_reach)) return;
  const auto* const known = std::ranges::find(timer_names, name, &TimerName::name);
  if (known == timer_names.end()) return;
  draft.parts.push_back({known->part, ms.front() / 1e3, ms.back() / 1e3, deepspeed});
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
    LogWord{"num_layers", "model.layers"},
    LogWord{"hidden_size", "model.hidden"},
    LogWord{"ffn_hidden_size", "model.ffn_hidden"},
    LogWord{"num_attention_heads", "model.heads"},
    LogWord{"num_experts", "model.experts"},
};

void read_argument(const DottedRow& row, LogDraft& draft) {
  if (row.name == "params_dtype" && row.value == "torch.float32")
    keep_setting(draft, "training.precision", "fp32");
  if (row.name == "fp8" || row.name == "bf16" || row.name == "fp16") {
    if (row.value != "None" && row.value != "False")
      keep_setting(draft, "training.precision", row.name);
    return;
  }
  const auto* const known = std::ranges::find(arguments, row.name, &LogWord::theirs);
  if (known == arguments.end() || row.value.find(' ') != std::string::npos) return;
  if (known->ours == "plan.vpp" && row.value == "None") return;
  std::string value = row.value;
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  keep_setting(draft, known->ours, value);
}

// "time (ms) | forward-compute: 58.16 | ...", of one rank.
bool read_timer_cells(std::string_view line, LogDraft& draft) {
  const auto at = line.find("time (ms) |");
  if (at == std::string_view::npos) return false;
  const bool deepspeed = holds(line.substr(0, at), "ank");  // "[Rank 0]", "rank=0"
  for (const std::string_view cell : cells_of(line.substr(at))) {
    const auto colon = cell.find(':');
    if (colon != std::string_view::npos)
      read_timer(cell.substr(0, colon), numbers_of(cell.substr(colon + 1)), deepspeed, draft);
  }
  return true;
}

}  // namespace

bool read_log_line(std::string_view line, LogDraft& draft) {
  for (const auto read : {read_megatron, read_nemo, read_torchtitan, read_deepspeed, read_nanotron,
                          read_timer_cells, read_composer, read_trainer_line}) {
    if (read(line, draft)) return true;
  }
  const auto row = dotted_row(line);
  if (!row) return false;
  read_timer(row->name, numbers_of(row->value), false, draft);
  read_argument(*row, draft);
  return false;  // a setting may be a sign too
}

std::vector<std::string_view> known_log_lines() {
  return {"Megatron-LM, Megatron-Bridge: 'elapsed time per iteration (ms): ...'",
          "NeMo: 'train_step_timing in s: ...'",
          "torchtitan: 'step: ... memory: ... tps: ...'",
          "DeepSpeed: 'SamplesPerSec=...'",
          "nanotron: 'elapsed_time_per_iteration_ms: ...'",
          "llm-foundry: 'Train throughput/batches_per_sec: ...'",
          "Hugging Face, NeMo 1: a progress bar with s/it, 'train_runtime'",
          "verl: 'timing_s/...'",
          "OLMo: 'throughput/device/...'",
          "PyTorch: 'CUDA out of memory'"};
}

}  // namespace planner
