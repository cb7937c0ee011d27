// Words of the programs, from configs/frameworks.
#include "planner/frameworks/framework_words.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/megatron_words.hpp"
#include "planner/frameworks/override_words.hpp"

namespace framework_words_test {

using planner::framework_words;

TEST_CASE("names as they are read, and settings that change nothing") {
  const auto& trainer = framework_words("trainer");
  CHECK(trainer.read_as("sequence_len") == "max_length");
  CHECK(trainer.read_as("max_length") == "max_length");
  CHECK(std::ranges::count(trainer.harmless, "wandb") == 1);
  CHECK(&trainer == &framework_words("trainer"));
}

TEST_CASE("no name is read as one that is read as another, or would be two settings") {
  for (const char* program : {"trainer", "torchtitan", "engines", "dialects"}) {
    std::set<std::string_view> names;
    for (const auto& [theirs, ours] : framework_words(program).words) {
      CAPTURE(theirs);
      CHECK(names.insert(theirs).second);
      CHECK(theirs != ours);
    }
  }
}

TEST_CASE("rows are words of both columns, whose arguments Megatron-LM has") {
  CHECK(planner::override_words().size() == framework_words("bridge").rows.size());
  for (const auto& word : planner::override_words()) {
    CAPTURE(word.flag);
    CHECK(word.flag.starts_with("--"));
    CHECK((word.bridge.empty() || word.bridge.find('.') != std::string_view::npos));
    CHECK_FALSE((word.bridge.empty() && word.nemo.empty()));
  }
  for (const auto& word : planner::megatron_words())
    CHECK_MESSAGE(planner::is_megatron_flag(word.flag), word.flag);
  for (const auto& row : framework_words("dialects").rows) {
    REQUIRE(row.size() == 2);
    CHECK_MESSAGE(planner::is_megatron_flag("--" + std::string(row[1])), row[1]);
  }
}

TEST_CASE("a program without a file is refused") {
  CHECK_THROWS_AS(framework_words("no-such-program"), costmodel::ConfigError);
}

}  // namespace framework_words_test
