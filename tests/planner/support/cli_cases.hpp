// Helpers shared by the tests of the command line.
#pragma once

#include <string>

namespace cli {

// A scenario with a plan of its own.
inline const std::string llama =
    "model: llama-3-8b\n"
    "cluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 8192, precision: bf16, stack: megatron-core-2025}\n"
    "plan: {tp: 2, pp: 2, dp: 4, micro_batch: 2, sequence_parallel: true, zero: 1}\n";

// Above what a command printed, in a golden file of several.
inline std::string heading(const std::string& command) { return "$ shardplan " + command + "\n"; }

}  // namespace cli
