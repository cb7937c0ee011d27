// The table of flags and fields, held against what both sides have.
#include "planner/frameworks/override_words.hpp"

#include <doctest/doctest.h>

#include "planner/frameworks/megatron_words.hpp"
#include "tests/planner/support/field_lists.hpp"

namespace override_words_test {

TEST_CASE("every flag is Megatron-LM's and every field is listed") {
  const auto bridge = field_lists::read("bridge_keys.txt");
  const auto nemo = field_lists::read("nemo_keys.txt");
  for (const auto& word : planner::override_words()) {
    CAPTURE(word.flag);
    CAPTURE(word.bridge);
    CHECK(planner::is_megatron_flag(word.flag));
    if (!word.bridge.empty()) CHECK(bridge.contains(std::string(word.bridge)));
    if (!word.nemo.empty()) CHECK_MESSAGE(nemo.contains(std::string(word.nemo)), word.nemo);
  }
}

TEST_CASE("data, logs and learning rates change no time") {
  CHECK(planner::is_harmless_override("logger.log_interval"));
  CHECK(planner::is_harmless_override("optimizer.lr"));
  CHECK_FALSE(planner::is_harmless_override("optimizer.use_distributed_optimizer"));
  CHECK_FALSE(planner::is_harmless_override("model.window_size"));
}

}  // namespace override_words_test
