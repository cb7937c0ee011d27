// The arguments of a Megatron-LM run, read from what people keep of one: a launch script, a list of
// arguments, or the table that a run prints at the top of its log.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/error.hpp"

namespace planner {

// The stacks of configs/stacks that stand for these programs of today.
inline constexpr std::string_view megatron_stack = "megatron-core-2026",
                                  bridge_stack = "megatron-bridge", trainer_stack = "peft",
                                  deepspeed_stack = "deepspeed";

struct MegatronArgument {
  std::string flag;                 // "--num-layers"; "$EXTRA" of arguments that are not known
  std::vector<std::string> values;  // none for a switch
  costmodel::Mark mark;
  std::string unknown;  // what of a value the script does not say: "$NODES"; else ""
};

struct MegatronArguments {
  // In the order given; of a repeated flag the last one counts, as with argparse.
  std::vector<MegatronArgument> list;
  std::int64_t world_size = 0;  // processes, one a device; 0: not said
  std::int64_t per_node = 0;    // of them on a node; 0: not said
  std::int64_t nodes = 0;       // where world_size is not known
  bool from_log = false;        // every argument is there, those at their defaults too
  std::string tokenizer;        // of a variable of the script; empty: none
  std::string stack = std::string(megatron_stack);  // whose kernels the arguments depart from
  std::vector<std::string> notes;

  const MegatronArgument* find(std::string_view flag) const {
    const auto found = std::find_if(list.rbegin(), list.rend(),
                                    [&](const MegatronArgument& a) { return a.flag == flag; });
    return found == list.rend() ? nullptr : &*found;
  }
};

}  // namespace planner
