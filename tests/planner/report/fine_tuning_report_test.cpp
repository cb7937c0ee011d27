// The fine-tuning scenarios: their reports, and what explain and JSON say of adapters and base.
#include "planner/report/fine_tuning_report.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/golden.hpp"
#include "tests/planner/support/in_process.hpp"

namespace fine_tuning_report_test {

TEST_CASE("evaluate's reports of the fine-tuning scenarios, and explain's of their bases") {
  std::string text;
  for (const char* name :
       {"llama-3-70b-lora-h100", "llama-2-13b-qlora-24gb", "llama-65b-qlora-48gb"}) {
    const std::string command = "evaluate " + std::string(name);
    text += "$ shardplan " + command + "\n" + in_process::printed(command) + "\n";
    const std::string explained = in_process::printed("explain " + std::string(name));
    const std::size_t from = explained.find("\nFine-tuning\n"), to = explained.find("\nFLOPs\n");
    REQUIRE(from != std::string::npos);
    REQUIRE(to != std::string::npos);
    text += "$ shardplan explain " + std::string(name) + explained.substr(from, to - from) + "\n";
  }
  CHECK(golden::compare("report_fine_tuning.txt", text) == "");
}

TEST_CASE("JSON has a block of the fine-tuning, and none of a pretraining") {
  const auto json =
      nlohmann::json::parse(in_process::printed("evaluate llama-2-13b-qlora-24gb --format json"));
  const auto& tuned = json["fine_tuning"];
  CHECK(tuned["method"] == "qlora");
  CHECK(tuned["trained_parameters"] == 62'586'880);
  CHECK(tuned["targets"].size() == 7);
  CHECK(tuned["bits_per_base_value"].get<double>() == doctest::Approx(4.127).epsilon(1e-4));
  CHECK(tuned["dequantisation_s"].get<double>() > 0);
  const double weights = json["memory"]["stages"][0]["weights_bytes"];
  CHECK(tuned["base_bytes"].get<double>() + 4 * 62'586'880 == doctest::Approx(weights));
  const auto plain =
      nlohmann::json::parse(in_process::printed("evaluate codeparrot-110m --format json"));
  CHECK_FALSE(plain.contains("fine_tuning"));
}

TEST_CASE("a method in words") {
  using namespace costmodel;
  CHECK(planner::method_text({}) == "");
  CHECK(planner::method_text({.method = FineTuningMethod::full}) == ", full fine-tuning");
  CHECK(planner::method_text({.method = FineTuningMethod::lora, .rank = 8, .targets = 0b101}) ==
        ", LoRA r 8 on q, v");
}

}  // namespace fine_tuning_report_test
