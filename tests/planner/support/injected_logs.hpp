// Logs of jobs with faults of twelve kinds in three strengths, as five frameworks print them, with
// timers and without. As in planted_logs.hpp the cost model prices the job with its fault, in sizes
// that no hypothesis has, and all figures are off by errors that are drawn. What a fault does to
// the series of iterations, and the line that a framework prints of it in some of the logs, is
// written here and nowhere in the diagnosis.
//
// A strength is what the fault costs: an iteration takes about 1.4, 1.8 or 2.8 times as long. One
// that changes time and memory by less than the prediction's own interval is in no log without
// timers, and nobody can find it there.
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/planner/support/planted_logs.hpp"

namespace injected {

using planner::Job;
using planner::JobPart;
using planted::Noise;
using planted::Written;

// A job in which faults are planted, and the framework that prints its log.
struct Base {
  std::string name;
  std::string yaml;
  std::function<std::string(const Written&, Noise&)> write;
  bool timers = false;    // whether that log has them
  bool reserved = false;  // its memory is what the allocator holds
};

// Hugging Face's Trainer: a bar an iteration, and dictionaries.
inline std::string trainer(const Written& w, Noise& noise) {
  std::string text = fmt::format(
      "***** Running training *****\n  Total train batch size (w. parallel, distributed & "
      "accumulation) = {}\n",
      w.sequences);
  for (int n = 1; n <= w.lines; ++n) {
    const double s = planted::iteration(w, n, noise);
    text += fmt::format("  {}%|#         | {}/500 [00:10<16:45, {:.2f}{}]\r", n / 5, n,
                        s >= 1 ? s : 1 / s, s >= 1 ? "s/it" : "it/s");
    text += fmt::format("{{'loss': 1.2, 'grad_norm': 2.3, 'epoch': 0.1, 'memory(GiB)': {:.2f}}}\n",
                        w.memory / (1 << 30));
  }
  return text;
}

inline const std::vector<Base>& bases() {
  static const std::vector<Base> all{
      {"megatron",
       "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 64}\ntraining: {global_batch: 256, "
       "sequence: 8192, precision: bf16, stack: megatron-core-2025}\nplan: {tp: 2, pp: 2, "
       "micro_batch: 1, zero: 1}\n",
       [](const Written& w, Noise& n) { return planted::megatron(w, n, false); }, true, false},
      {"deepspeed",
       "model: gpt3-13b\ncluster: {base: selene, devices: 32}\ntraining: {global_batch: 128, "
       "sequence: 2048, precision: bf16, stack: megatron-deepspeed-2022}\nplan: {tp: 2, "
       "micro_batch: 2, zero: 1}\n",
       planted::deepspeed, true, false},
      {"torchtitan",
       "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 64}\ntraining: {global_batch: 128, "
       "sequence: 8192, precision: bf16, stack: torchtitan}\nplan: {tp: 1, micro_batch: 1, zero: "
       "3, recompute: selective}\n",
       planted::torchtitan, false, true},
      {"nemo",
       "model: qwen3-30b-a3b\ncluster: {base: dgx-h100, devices: 32}\ntraining: {sequence: 4096, "
       "global_batch: 512, stack: nemo-2025}\nplan: {tp: 1, pp: 1, ep: 8, micro_batch: 1, "
       "recompute: none, zero: 1}\n",
       planted::nemo, false, false},
      {"trainer",
       "model: llama-2-7b\ncluster: {base: dgx-a100, devices: 16}\ntraining: {sequence: 4096, "
       "global_batch: 64, stack: peft}\nplan: {tp: 1, micro_batch: 1, zero: 3, recompute: "
       "none}\n",
       trainer, false, true}};
  return all;
}

struct Fault {
  std::string cause;
  // Plants it in a size of at least 1; false where the job cannot have it.
  std::function<bool(Job& job, double size)> plant;
  bool sized = true;  // grown until the job takes as long as its strength asks for
  std::function<void(Written& log, int strength)> series = [](Written&, int) {};
  std::string line = {};  // that the framework prints in every second log, or always
  bool always = false;
};

inline double pick(int strength, double a, double b, double c) {
  return strength == 0 ? a : strength == 1 ? b : c;
}

inline bool slow_tiers(Job& job, double size, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < std::min(to, job.cluster.tiers.size()); ++i) {
    auto& tier = job.cluster.tiers[i];
    tier.bandwidth *= 1 / size;
    tier.measured.clear();
    for (auto& group : tier.groups) group.bandwidth *= 1 / size;
  }
  return from < job.cluster.tiers.size();
}

inline const std::vector<Fault>& faults() {
  using costmodel::Precision;
  static const auto jittery = [](Written& w, int strength) {
    w.jitter = pick(strength, 0.02, 0.03, 0.08);
  };
  static const auto steadily = [](Written&, int) {};
  static const std::vector<Fault> all{
      {"slow-network", [](Job& j, double size) { return slow_tiers(j, size, 1, 9); }, true, jittery,
       "host3:812:990 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.3<0>"},
      {"no-nvlink", [](Job& j, double size) { return slow_tiers(j, 4 * size, 0, 1); }, true,
       steadily, "host3:812:990 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1."},
      {"slow-node",
       [](Job& j, double size) {
         planted::scale_rates(j.cluster.device, 1 / size);
         j.one_node = true;
         return true;
       },
       true, steadily},
      {"slow-devices",
       [](Job& j, double size) {
         planted::scale_rates(j.cluster.device, 1 / size);
         return true;
       },
       true,
       [](Written& w, int s) {  // clocks fall after some iterations
         w.step_at = 18;
         w.step_times = pick(s, 1.4, 1.8, 2.8);
         w.seconds /= w.step_times;
       },
       "gpu 3: SW Thermal Slowdown : Active"},
      {"host-bound",
       [](Job& j, double size) {
         j.cluster.device.kernel_launch *= size;
         j.cluster.device.host_call *= size;
         j.training.stack.host.kernel_launch *= size;
         j.training.stack.host.micro_batch *= size;
         return true;
       },
       true, jittery, "env: CUDA_LAUNCH_BLOCKING=1"},
      {"data-stall",
       [](Job& j, double) {
         j.slow_iterations = 0.1;
         return true;
       },
       false,
       [](Written& w, int s) {
         w.every = s == 0 ? 8 : s == 1 ? 4 : 5;
         w.slow_times = pick(s, 1.6, 2.2, 4);
       },
       "UserWarning: This DataLoader will create 16 worker processes in total. Our suggested max "
       "number of worker in current system is 4"},
      {"recomputation",
       [](Job& j, double) {
         if (j.plan.recompute.granularity == costmodel::Recomputation::full) return false;
         j.plan.recompute = {costmodel::Recomputation::full};
         return true;
       },
       false},
      {"full-precision",
       [](Job& j, double) {
         j.training.precision = Precision::fp32;
         j.training.stack.kernels.attention = costmodel::AttentionKernel::unfused;
         return true;
       },
       false, [](Written&, int) {}, "using torch.float32 for parameters ..."},
      {"expert-imbalance",
       [](Job& j, double size) {
         if (j.plan.ep == 1) return false;
         j.training.expert_imbalance = size;
         return true;
       },
       true, [](Written& w, int s) { w.jitter = pick(s, 0.04, 0.08, 0.1); }},
      {"allocator-retries",
       [](Job& j, double size) {
         j.training.stack.host.iteration.value += 0.2 * size;
         return true;
       },
       true, jittery,
       "[rank0]:[titan] 2026-01-01 10:00:00,000 - root - WARNING - 5 CUDA memory allocation "
       "retries.",
       true},
      {"checkpoint-writing", [](Job&, double) { return true; }, false,
       [](Written& w, int s) {
         w.every = s == 0 ? 20 : s == 1 ? 25 : 30;
         w.slow_times = pick(s, 3, 8, 20);
         w.lines = 100;
       },
       "saving checkpoint at iteration      20 to /checkpoints in torch_dist format", true},
      {"growth", [](Job&, double) { return true; }, false,
       [](Written& w, int s) { w.growth = pick(s, 0.02, 0.05, 0.2); }}};
  return all;
}

// Plants a fault in a strength: in such a size that an iteration takes about 1.4, 1.8 or 2.8 times
// as long. False where no size does.
inline bool plant(const Fault& fault, int strength, const costmodel::Scenario& s, Job& job) {
  if (!fault.sized) return fault.plant(job, 1);
  const auto well = planner::predict(job, s.model, {.data_in_forward = true});
  const double goal = pick(strength, 1.4, 1.8, 2.8);
  std::optional<Job> found;
  int least = 1, most = 56;  // powers of the step, of which the least that suffices is looked for
  while (least <= most) {
    const int middle = (least + most) / 2;
    Job faulty = job;
    if (!fault.plant(faulty, std::pow(1.18, middle))) return false;
    const auto p = planner::predict(faulty, s.model, {.data_in_forward = true});
    const bool enough = p && p->iteration >= well->iteration * goal;
    if (enough) found = std::move(faulty);
    (enough ? most : least) = enough ? middle - 1 : middle + 1;
  }
  if (!found) return false;
  job = *found;
  return true;
}

struct Injected {
  const Base* base;
  const Fault* fault;  // null: a healthy job
  int strength = 0;
  bool timers = false;
};

// A job with its fault, and what is predicted of it and without it.
struct Planted {
  Job job;
  planner::PredictedJob well, faulty;
};

inline std::optional<Planted> planted_job(const Injected& one, const costmodel::Scenario& s) {
  Planted p{.job = {.cluster = s.cluster, .training = s.training, .plan = resolve_plan(s)}};
  p.well = *planner::predict(p.job, s.model, {.data_in_forward = true});
  if (one.fault != nullptr && !plant(*one.fault, one.strength, s, p.job)) return {};
  const auto faulty =
      planner::predict(p.job, s.model, {.data_in_forward = true, .reserved = one.base->reserved});
  if (!faulty) return {};
  p.faulty = *faulty;
  return p;
}

inline std::string log_of(const Injected& one, const Planted& planted, const costmodel::Scenario& s,
                          std::uint32_t seed) {
  const Job& job = planted.job;
  planner::PredictedJob faulty = planted.faulty;
  std::uint32_t own = seed + 97 * static_cast<std::uint32_t>(one.strength) + (one.timers ? 7 : 0);
  for (const char c : one.base->name + (one.fault == nullptr ? "" : one.fault->cause))
    own = 31 * own + static_cast<unsigned char>(c);
  Noise noise(own);
  const double off_all = noise.times(0.05);
  for (std::size_t i = 0; i < faulty.parts.size(); ++i) {
    auto& part = faulty.parts[i];
    const double off = off_all * noise.times(0.05);
    const auto kind = static_cast<JobPart>(i);
    if (job.one_node && (kind == JobPart::forward || kind == JobPart::backward))
      part.least = planted.well.parts[i].least;
    part = {part.least * off, part.most * off * noise.times(0.01)};
  }
  const auto memory = one.base->reserved ? faulty.reserved : faulty.allocated;
  Written written{.seconds = faulty.iteration.value * off_all,
                  .memory = memory.value * noise.times(0.04),
                  .parts = faulty,
                  .scenario = s,
                  .sequences = job.training.global_batch};
  std::string lines;
  if (one.fault != nullptr) {
    one.fault->series(written, one.strength);
    const bool printed = one.fault->always || own % 2 == 0;
    if (printed && !one.fault->line.empty()) lines = one.fault->line + "\n";
  }
  const std::string log = lines + one.base->write(written, noise);
  return one.timers ? log : planted::without_timers(log);
}

}  // namespace injected
