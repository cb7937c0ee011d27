#include "planner/page/json_tornado.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/few_plans.hpp"
#include "tests/planner/support/pages.hpp"

namespace json_tornado_test {

using pages::both;
using pages::Both;
using pages::has;

TEST_CASE("every figure of what the answer hangs on stands on the page, a bar for each input") {
  const program::Scratch scratch;
  scratch.write("s.yaml",
                "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
                "training: {global_batch: 32, sequence: 8192, stack: megatron-core-2025}\n" +
                    few_plans::if_sanitized);
  const std::string command = "plan s.yaml --strategy grid --sensitivity";
  const Both found = both(command, scratch);
  const auto& inputs = found.json["sensitivity"]["inputs"];
  REQUIRE(inputs.size() > 5);
  CHECK(has(found.page, "What the answer hangs on"));
  std::size_t changes = 0;
  for (const auto& input : inputs) {
    const bool moves = !input["below"].is_null() || !input["above"].is_null();
    if (input["effect"] < 5e-4 && !moves) continue;  // told in a sentence
    for (const char* key :
         {"value", "low", "high", "spread", "iteration_low_s", "iteration_high_s"})
      pages::check_figure(found.page, input[key]);
    for (const char* side : {"below", "above"}) {
      if (input[side].is_null()) continue;
      ++changes;
      pages::check_figure(found.page, input[side]["value"]);
    }
  }
  CHECK(changes > 0);
  const auto text = program::run(program::words_of(command + " --quiet"), scratch);
  CHECK(has(text.out, "What the answer hangs on"));
  for (const auto& sentence : found.json["sensitivity"]["sentences"])
    CHECK(has(text.out, sentence.get<std::string>()));
}

TEST_CASE("an evaluated plan is priced again; a report without it has no section") {
  const program::Scratch scratch;
  const Both found = both("evaluate tiny-gpt-cpu --sensitivity", scratch);
  const auto& inputs = found.json["sensitivity"]["inputs"];
  REQUIRE(!inputs.empty());
  CHECK(inputs[0]["key"] == "device.gemm.efficiency");
  for (const auto& input : inputs)
    if (input["effect"] >= 5e-4) pages::check_figure(found.page, input["iteration_low_s"]);
  CHECK_FALSE(inputs[0].contains("below"));
  CHECK(planner::sensitivity_section(nlohmann::ordered_json::parse("{}")).empty());
  CHECK_FALSE(has(both("evaluate tiny-gpt-cpu", scratch).page, "hangs on"));
}

}  // namespace json_tornado_test
