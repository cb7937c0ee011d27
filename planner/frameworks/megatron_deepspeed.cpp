#include "planner/frameworks/megatron_deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

constexpr std::string_view pipeline_stack = "megatron-deepspeed-2022",
                           sharding_stack = "deepspeed-2021";

// DeepSpeed's pipelines shard nothing beyond stage 1 of ZeRO; the later stages run without them.
std::string_view stack_of(const MegatronArguments& arguments) {
  const MegatronArgument* stage = arguments.find("--zero-stage");
  int value = 0;
  if (stage != nullptr && !stage->values.empty()) {
    const std::string& text = stage->values.front();
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value > 1 ? sharding_stack : pipeline_stack;
}

// DeepSpeed's PipelineModule counts the layers whose class names match one of the words.
bool counts_embedding(const MegatronArguments& arguments) {
  const MegatronArgument* method = arguments.find("--pp-partition-method");
  return method != nullptr && !method->values.empty() &&
         method->values.front().find("embedding") != std::string::npos;
}

}  // namespace

bool is_run_by_deepspeed(const MegatronArguments& arguments) {
  // A log prints the stage of jobs without DeepSpeed too.
  return arguments.find("--deepspeed") != nullptr ||
         (!arguments.from_log && arguments.find("--zero-stage") != nullptr);
}

MegatronArguments in_megatron_words(MegatronArguments arguments) {
  const auto has = [&](const char* flag) { return arguments.find(flag) != nullptr; };
  std::vector<MegatronArgument> implied;
  const auto imply = [&](const char* flag, std::vector<std::string> values = {}) {
    if (!has(flag)) implied.push_back({flag, std::move(values), {}, ""});
  };
  if (has("--num-key-value-heads")) imply("--group-query-attention");
  if (has("--ds-sequence-parallel-size")) imply("--cp-comm-type", {"a2a"});  // Ulysses
  if (is_run_by_deepspeed(arguments)) {
    imply("--transformer-impl", {"local"});
    imply("--no-rope-fusion");
    if (counts_embedding(arguments)) {
      imply("--account-for-embedding-in-pipeline-split");
      imply("--account-for-loss-in-pipeline-split");
    }
    if (arguments.stack == megatron_stack) {
      arguments.stack = stack_of(arguments);
      arguments.notes.push_back(
          fmt::format("DeepSpeed runs the job: the stack is {}", arguments.stack));
    }
  }
  for (MegatronArgument& one : arguments.list) {
    if (!one.flag.starts_with("--")) continue;
    const std::string name = one.flag.substr(2);
    one.flag = "--" + std::string(framework_words("megatron").read_as(name));
  }
  std::ranges::move(implied, std::back_inserter(arguments.list));
  return arguments;
}

}  // namespace planner
