// Lines of trainers that draw a progress bar or print dictionaries and records.
//
// Hugging Face's Trainer, and what stands on it (TRL, axolotl, LLaMA-Factory, ms-swift): tqdm's
// " 12/375 [09:57<5:01:12, 49.79s/it]"; "{'train_runtime': 18671.2, 'train_samples_per_second':
//   1.285, 'train_steps_per_second': 0.0201, ...}" (transformers, trainer_utils.speed_metrics);
//   "Total train batch size (w. parallel, distributed & accumulation) = 80" (Trainer._inner_
//   training_loop); ms-swift's 'train_speed(iter/s)' and 'memory(GiB)'.
// NeMo 1: Lightning's bar "Epoch 0: 1%| | 795/77225 [9:07:30<877:00:00, 41.30s/it, ...]".
// verl: "step:3 - ... - timing_s/update_actor:41.2 - perf/max_memory_allocated_gb:61.3 ...".
// OLMo: "[step=10/739328]" and under it "throughput/device/batches_per_second=0.1234" or
//   "throughput/device/BPS=0.55".
#pragma once

#include <string_view>

#include "planner/logs/log_formats.hpp"

namespace planner {

// Takes what the line has, if it is one of these.
bool read_trainer_line(std::string_view line, LogDraft& draft);

}  // namespace planner
