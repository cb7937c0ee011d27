// Logs of jobs with a known fault. What such a log says is not what the diagnosis expects: the cost
// model prices the job with its fault, in a size of its own that no hypothesis has, and every
// figure is off by an error that is drawn: the whole job and each part of it by 5 % (as published
// runs are, docs/accuracy.md), memory by 4 %, each iteration by 1 %. The lines are a framework's.
//
// Megatron-LM, Megatron-Bridge and DeepSpeed print their timers, as --timing-log-level 2 and
// wall_clock_breakdown have them; the other frameworks have none. A log without its first lines
// names no settings.
//
// The ten of logs/ are such logs, written once (seed 1): what they hold does not follow the cost
// model any more.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_prediction.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace planted {

using planner::Job;
using planner::JobPart;

// The job as it runs, in the words of one framework.
struct Written {
  double seconds = 0, memory = 0;  // memory: allocated or reserved, as the framework prints it
  planner::PredictedJob parts;
  costmodel::Scenario scenario;
  std::int64_t sequences = 0;  // of an iteration, as run
  int every = 0;               // each so many iterations, one is slow; 0: none
  double slow_times = 1.7;     // ... so many times as long
  double growth = 0;           // of the time, from each iteration to the next
  int step_at = 0;             // from this iteration on `step_times` as long; 0: never
  double step_times = 1;
  double jitter = 0.01;  // of an iteration
  int lines = 30;        // iterations of the log
};

class Noise {
 public:
  explicit Noise(std::uint32_t seed) : random_(seed) {}
  double times(double sigma) {
    const double u = random_.real(1e-9, 1), v = random_.real(0, 1);
    return std::exp(sigma * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v));
  }

 private:
  fixtures::Random random_;
};

inline double iteration(const Written& w, int n, Noise& noise) {
  const double warm = n == 1 ? 4 : n == 2 ? 1.3 : 1;
  const double stall = w.every > 0 && n % w.every == 0 ? w.slow_times : 1;
  const double step = w.step_at > 0 && n >= w.step_at ? w.step_times : 1;
  return w.seconds * noise.times(w.jitter) * warm * stall * step * (1 + w.growth * n);
}

inline std::string megatron(const Written& w, Noise& noise, bool bridge) {
  std::string text;
  for (int n = 1; n <= w.lines; ++n) {
    const double s = iteration(w, n, noise);
    if (bridge) text += fmt::format("Step Time : {:.2f}s GPU utilization: 312.4TFLOP/s/GPU\n", s);
    text += fmt::format(
        " [2026-03-28 14:13:{:02}] iteration {:>8}/{:>8} | consumed samples: {:>12} | elapsed time "
        "per iteration (ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): 312.4 | learning rate: "
        "1.420000E-05 | global batch size: {:>5} | lm loss: 1.818812E+00 | loss scale: 1.0 | grad "
        "norm: 1.300 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        n, n, 500, n * w.sequences, 1e3 * s, w.sequences);
    if (n == 2) {
      const double mebi = w.memory / 1048576;
      text += fmt::format(
          "[Rank 0] (after 2 iterations) memory (MB) | allocated: {} | max allocated: {} | "
          "reserved: "
          "{} | max reserved: {}\n",
          0.6 * mebi, mebi, 1.05 * mebi, 1.05 * mebi);
    }
    text += "(min, max) time across ranks (ms):\n";
    const auto row = [&](const char* name, JobPart part) {
      const auto& p = w.parts.parts[static_cast<std::size_t>(part)];
      const double noisy = noise.times(0.01);
      text += fmt::format("    {:.<48}: ({:.2f}, {:.2f})\n", std::string(name) + " ",
                          1e3 * noisy * p.least.value, 1e3 * noisy * p.most.value);
    };
    row("forward-backward", JobPart::forward_backward);
    row("forward-compute", JobPart::forward);
    row("backward-compute", JobPart::backward);
    row("batch-generator", JobPart::data);
    row("all-grads-sync", JobPart::gradient_sync);
    row("optimizer", JobPart::optimizer);
  }
  return text;
}

inline std::string nemo(const Written& w, Noise& noise) {
  std::string text;
  for (int n = 1; n <= w.lines + 10; ++n) {
    text += fmt::format(
        "Training epoch 0, iteration {}/499 | lr: 3e-05 | consumed_samples: {} | "
        "global_batch_size: "
        "{} | global_step: {} | reduced_train_loss: 1.233 | train_step_timing in s: {:.4g}\n",
        n - 1, n * w.sequences, w.sequences, n, iteration(w, n, noise));
  }
  return text;
}

// The stamp of a moment of 14 March 2026.
inline std::string stamp(double seconds) {
  const auto milliseconds = static_cast<std::int64_t>(seconds * 1e3);
  const std::int64_t s = milliseconds / 1000;
  return fmt::format("2026-03-14 {:02}:{:02}:{:02},{:03}", 8 + s / 3600, s / 60 % 60, s % 60,
                     milliseconds % 1000);
}

inline std::string torchtitan(const Written& w, Noise& noise) {
  const double tokens = static_cast<double>(w.sequences * w.scenario.training.sequence) /
                        static_cast<double>(w.scenario.cluster.devices);
  std::string text;
  double now = 0;
  for (int n = 1; n <= w.lines; ++n) {
    const double s = iteration(w, n, noise);
    now += s;
    const std::string tps = costmodel::format_integer(std::llround(tokens / s));
    text += fmt::format(
        "[rank0]:[titan] {} - root - INFO - \x1b[31mstep: {:>2}  \x1b[32mloss:  7.62585  "
        "\x1b[38;2;180;60;0mgrad_norm: 26.6250  \x1b[38;2;54;234;195mmemory: "
        "{:>5.2f}GiB(63.51%)  \x1b[34mtps: {}  \x1b[36mtflops: 314.71  \x1b[35mmfu: "
        "31.99%\x1b[39m\n",
        stamp(now), n, w.memory / (1 << 30), tps);
  }
  return text;
}

inline std::string deepspeed(const Written& w, Noise& noise) {
  std::string text;
  double now = 0;
  for (int n = 1; n <= w.lines; ++n) {
    const double s = iteration(w, n, noise);
    now += s;
    const auto ms = [&](JobPart part) {
      return 1e3 * noise.times(0.01) * w.parts.parts[static_cast<std::size_t>(part)].most.value;
    };
    const double sync = ms(JobPart::gradient_sync), backward = ms(JobPart::backward);
    text += fmt::format(
        "[{}] [INFO] [timer.py:215:stop] epoch=0/micro_step={}/global_step={}, "
        "RunningAvgSamplesPerSec={}, CurrSamplesPerSec={}, MemAllocated=19.65GB, "
        "MaxMemAllocated={:.2f}GB\n",
        stamp(now), 8 * n, n, static_cast<double>(w.sequences) / w.seconds,
        static_cast<double>(w.sequences) / s, w.memory / (1 << 30));
    text += fmt::format(
        "[{}] [INFO] [logging.py:96:log_dist] [Rank 0] rank=0 time (ms) | fwd: {:.2f} | bwd: "
        "{:.2f} "
        "| bwd_inner: {:.2f} | bwd_allreduce: {:.2f} | step: {:.2f}\n",
        stamp(now), ms(JobPart::forward), backward + sync, backward, sync, ms(JobPart::optimizer));
  }
  return text;
}

// "11.5K", "2.06K", as nanotron's human_format: three digits.
inline std::string thousands(double n) {
  const char* const letters[] = {"", "K", "M", "G", "T"};
  int i = 0;
  for (; n >= 1000 && i < 4; ++i) n /= 1000;
  return fmt::format("{:.3g}{}", n, letters[i]);
}

inline std::string nanotron(const Written& w, Noise& noise) {
  const double tokens = static_cast<double>(w.sequences * w.scenario.training.sequence);
  std::string text;
  for (int n = 1; n <= w.lines + 30; ++n) {
    const double s = iteration(w, n, noise);
    text += fmt::format(
        "10/17/2026 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: {} / 378950 | consumed_tokens: {} | "
        "elapsed_time_per_iteration_ms: {} | tokens_per_sec: {} | tokens_per_sec_per_gpu: {} | "
        "global_batch_size: {} | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | "
        "hardware_tflops_per_gpu: 38.3 | grad_norm: 1.25 | cuda_memory_allocated: 9.2G | "
        "cuda_max_memory_reserved: {}\n",
        n, thousands(tokens * n), thousands(1e3 * s), thousands(tokens / s),
        thousands(tokens / s / static_cast<double>(w.scenario.cluster.devices)), w.sequences,
        thousands(w.memory));
  }
  return text;
}

struct Case {
  std::string name;   // logs/NAME.yaml, logs/NAME.log
  std::string cause;  // which the diagnosis should name first
  void (*fault)(Job& job);
  std::string (*write)(const Written& job, Noise& noise);
  int every = 0;
};

inline void scale_rates(costmodel::DeviceSpec& device, double times) {
  for (auto& peak : device.peak) peak *= times;
  device.memory_bandwidth *= times;
}

inline const std::vector<Case>& cases() {
  using costmodel::Recomputation;
  static constexpr auto lm = [](const Written& w, Noise& n) { return megatron(w, n, false); };
  static constexpr auto bridge = [](const Written& w, Noise& n) { return megatron(w, n, true); };
  static const std::vector<Case> all{
      {"megatron_slow_node", "slow-node",
       [](Job& j) {
         scale_rates(j.cluster.device, 1 / 1.27);
         j.one_node = true;
       },
       lm},
      {"megatron_micro_batch", "micro-batch", [](Job& j) { j.plan.micro_batch = 1; }, lm},
      {"megatron_no_overlap", "no-gradient-overlap",
       [](Job& j) { j.training.overlap.overlap_grad_reduce = false; }, lm},
      {"bridge_tp_across_nodes", "tp-across-nodes",
       [](Job& j) { j.plan.rank_order = "dp-tp-cp-ep-pp"; }, bridge},
      {"nemo_fp8_inactive", "not-narrow",
       [](Job& j) { j.training.precision = costmodel::Precision::bf16; }, nemo},
      {"torchtitan_recomputation", "recomputation",
       [](Job& j) { j.plan.recompute = {Recomputation::full}; }, torchtitan},
      {"torchtitan_eager_attention", "eager-attention",
       [](Job& j) { j.training.stack.kernels.attention = costmodel::AttentionKernel::unfused; },
       torchtitan},
      {"deepspeed_slow_network", "slow-network",
       [](Job& j) { j.cluster.tiers.back().bandwidth *= 0.3; }, deepspeed},
      {"deepspeed_accumulation", "other-settings", [](Job& j) { j.training.global_batch *= 2; },
       deepspeed},
      {"nanotron_data_stall", "data-stall", [](Job&) {}, nanotron, 8}};
  return all;
}

// The log without the lines of timers.
inline std::string without_timers(const std::string& log) {
  std::string kept;
  for (std::size_t at = 0; at < log.size();) {
    const std::size_t end = log.find('\n', at);
    const std::string line = log.substr(at, end - at + 1);
    if (line.find(" ...") == std::string::npos && line.find("time (ms)") == std::string::npos)
      kept += line;
    at = end + 1;
  }
  return kept;
}

inline std::string file_of(const Case& one, const char* ending) {
  return std::string(SHARDPLAN_SOURCE_DIR) + "/tests/planner/support/logs/" + one.name + ending;
}

inline const costmodel::Scenario& scenario_of(const Case& one) {  // read once
  static std::map<std::string, costmodel::Scenario> read;
  const auto [at, fresh] = read.try_emplace(one.name);
  if (fresh) at->second = costmodel::load_scenario(file_of(one, ".yaml"), fixtures::configs(), {});
  return at->second;
}

struct Priced {
  Job job;  // with its fault
  planner::PredictedJob well, faulty;
};

inline const Priced& priced(const Case& one) {  // once for all draws of errors
  static std::map<std::pair<std::string, void (*)(Job&)>, Priced> known;
  const auto [at, fresh] = known.try_emplace({one.name, one.fault});
  if (!fresh) return at->second;
  const costmodel::Scenario& s = scenario_of(one);
  Job job{.cluster = s.cluster, .training = s.training, .plan = resolve_plan(s)};
  at->second.well = *planner::predict(job, s.model, {.data_in_forward = true, .reserved = true});
  one.fault(job);
  at->second.faulty = *planner::predict(job, s.model, {.data_in_forward = true, .reserved = true});
  at->second.job = job;
  return at->second;
}

inline std::string log_of(const Case& one, std::uint32_t seed) {
  const auto& [job, well, predicted] = priced(one);
  planner::PredictedJob faulty = predicted;
  std::uint32_t own = seed;  // cases of one seed differ
  for (const char c : one.name) own = 31 * own + static_cast<unsigned char>(c);
  Noise noise(own);
  const double whole = noise.times(0.05);
  for (std::size_t i = 0; i < faulty.parts.size(); ++i) {
    auto& part = faulty.parts[i];
    const double off = whole * noise.times(0.05);
    const auto kind = static_cast<JobPart>(i);
    if (job.one_node && (kind == JobPart::forward || kind == JobPart::backward))
      part.least = well.parts[i].least;
    part = {part.least * off, part.most * off * noise.times(0.01)};
  }
  const bool reserved = one.write == torchtitan || one.write == nanotron;
  const auto memory = reserved ? faulty.reserved : faulty.allocated;
  const Written written{.seconds = faulty.iteration.value * whole,
                        .memory = memory.value * noise.times(0.04),
                        .parts = faulty,
                        .scenario = scenario_of(one),
                        .sequences = job.training.global_batch,
                        .every = one.every};
  return one.write(written, noise);
}

}  // namespace planted
