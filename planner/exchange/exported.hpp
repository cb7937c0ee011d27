// What an export writes, and how it refuses a plan that the framework cannot run.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

struct Exported {
  std::string text;                // what a user runs: a script
  std::string json;                // the same as data
  std::vector<std::string> notes;  // where the framework differs from the cost model's assumptions
};

// Settings by their names in a nested file: "fsdp_config.offload_params", "true". What stands below
// a map follows one another.
using NamedSettings = std::vector<std::pair<std::string, std::string>>;
std::string nested_yaml(const NamedSettings& settings);
inline const char* truth(bool value) { return value ? "true" : "false"; }

// The remedy where it is the framework that is wrong: `export` names those that write the plan.
inline constexpr const char* another_target = "export to another framework";

// Collects what a framework cannot run; its name goes before each reason.
class Refusals {
 public:
  explicit Refusals(std::string framework) : framework_(std::move(framework)) {}
  void refuse(bool wrong, std::string_view key, const std::string& reason, std::string remedy);
  std::vector<costmodel::Violation> found;

 private:
  std::string framework_;
};

// What frameworks whose stages, replicas, ranks and nodes are all alike cannot run.
void refuse_unlike(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                   Refusals& refusals);

// DeepSpeed alone has ZeRO++; that groups of shards share the optimizer's states, Megatron-FSDP.
inline constexpr std::string_view no_zero_plus_plus = "there is no ZeRO++",
                                  no_further_shards = "groups of shards keep all states each",
                                  without_zero_plus_plus = "leave the keys of ZeRO++ out",
                                  without_further_shards = "set outer_dp_sharding: no_shard";

// That the data of a script are not the scenario's samples of unequal length.
inline constexpr std::string_view samples_note =
    "training.sample_tokens is not exported: the script's data fill each sequence, and how samples "
    "are packed or padded is the data set's own setting";

// Throws costmodel::ConfigError for the first violation, at the place of its key.
void refuse_first(const std::vector<costmodel::Violation>& broken,
                  const costmodel::Scenario& scenario);

}  // namespace planner
