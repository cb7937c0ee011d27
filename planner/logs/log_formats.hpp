// The lines that training frameworks print, each recognised by its own words. Where each was seen:
//
// Megatron-LM: "iteration 71/ 100 | consumed samples: 9088 | elapsed time per iteration (ms):
//   5361.6 | ..." (NVIDIA/Megatron-LM issue 756); "[Rank 0] (after 20 iterations) memory (MB) |
//   allocated: ... | max reserved: ..." and "time (ms) | forward-compute: 58.16 | ..." (NVIDIA/nccl
//   issue 743); "(min, max) time across ranks (ms):" with dotted rows (bigcode-project/Megatron-LM
//   issue 28); the table of arguments and "using world size: ..." (NVIDIA/Megatron-LM issues 91 and
//   673).
// Megatron-Bridge: the same lines and "Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU"
//   (NVIDIA-NeMo/Megatron-Bridge pull request 841).
// NeMo: "Training epoch 0, iteration 120/149 | ... | train_step_timing in s: 0.03146"
//   (NVIDIA-BioNeMo/bionemo-recipes pull request 740), and Lightning's bar "train_step_timing in
//   s=0.615" (NVIDIA-NeMo/Speech issue 7957).
// torchtitan: "step:  4  loss: ...  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: ..."
//   (pytorch/torchtitan pull request 2389), "Building 1-D device mesh with ['dp_shard'], [8]" (pull
//   request 1349), "Applied selective activation checkpointing" (pull request 3393).
// DeepSpeed: "RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.009, ..., MaxMemAllocated=63.31GB"
//   and "time (ms) | forward: 652.41 | backward: ..." (deepspeedai/DeepSpeed issue 3742; older
//   words in issue 1825); today's fwd, bwd, bwd_inner, bwd_allreduce, step are its
//   runtime/engine.py.
// nanotron: "iteration: 327281 / 378950 | ... | elapsed_time_per_iteration_ms: 11.5K | ..."
//   (huggingface/nanotron issue 390 and pull request 23).
// llm-foundry: "[batch=12/4800]:" and "Train throughput/batches_per_sec: 0.3258"
//   (mosaicml/examples pull request 118, mosaicml/llm-foundry issue 444).
// Trainers that draw a bar or print a dictionary: trainer_lines.hpp.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "planner/logs/training_log.hpp"

namespace planner {

// A line that stands for an iteration: what it says of it, and what it leaves open.
struct IterationLine {
  std::int64_t number = 0;
  std::optional<double> seconds;  // as printed
  std::optional<double> stamp;    // the line's time stamp
  double sequences_per_s = 0, tokens_per_s_per_device = 0;
  double samples_seen = 0;  // since the job began
};

struct PartLine {
  JobPart part;
  double least, most;  // seconds
  // GPT-NeoX prints its own timers and DeepSpeed's of the same iteration: one of the two counts.
  bool deepspeed = false;
};

// A log as far as it has been read.
struct LogDraft {
  TrainingLog log;
  std::vector<IterationLine> iterations;
  std::vector<PartLine> parts;
  std::int64_t record = 0;  // the iteration of the record of several lines that is being read
  std::vector<double> flops_per_s;  // of a device, by line
  // Of a trainer's last line, over all that it ran; 0: there is none.
  double summary_steps_per_s = 0, summary_samples_per_s = 0, summary_s = 0;
};

// Takes what the line has, if it is one of these; false for another one.
bool read_log_line(std::string_view line, LogDraft& draft);

// Keeps a setting by the key of a scenario, a number only if it is one of at least 1.
void keep_setting(LogDraft& draft, std::string_view key, std::string value);
void keep_number(LogDraft& draft, std::string_view key, std::optional<double> number);
void name_framework(LogDraft& draft, std::string_view name);
// The number of an iteration; 0 for none.
std::int64_t iteration_number(std::optional<double> number);
void raise_to(costmodel::Bytes& highest, std::optional<double> bytes);

// The lines looked for, for messages: one a framework.
std::vector<std::string_view> known_log_lines();

}  // namespace planner
