// The words that export and import share are words of Megatron-LM, each once.
#include "planner/frameworks/megatron_words.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

namespace megatron_words_test {

TEST_CASE("every flag of the table is one of Megatron-LM, and flags and keys are unique") {
  std::set<std::string_view> flags, keys;
  for (const auto& word : planner::megatron_words()) {
    CHECK_MESSAGE(planner::is_megatron_flag(word.flag), word.flag);
    CHECK_MESSAGE(!planner::is_harmless_to_megatron(word.flag), word.flag);
    CHECK(flags.insert(word.flag).second);
    CHECK(keys.insert(word.key).second);
    CHECK(planner::megatron_flag(word.key) == word.flag);
  }
}

TEST_CASE("what changes neither time nor memory is harmless, what may change them is not") {
  for (const auto* flag : {"--data-path", "--wandb-project", "--log-throughput", "--lr-decay-style",
                           "--seed", "--save-interval", "--mock-data"})
    CHECK_MESSAGE(planner::is_harmless_to_megatron(flag), flag);
  for (const auto* flag : {"--window-size", "--optimizer-cpu-offload", "--rampup-batch-size",
                           "--moe-router-dtype", "--data-parallel-sharding-strategy"})
    CHECK_MESSAGE(!planner::is_harmless_to_megatron(flag), flag);
}

}  // namespace megatron_words_test
