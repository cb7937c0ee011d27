// The scenarios that the textbook's documents name: their reports, up to the traffic, and how near
// GPT-3 175B on 1,024 A100s is to what was published.
#include <doctest/doctest.h>

#include <string>

#include "tests/golden.hpp"
#include "tests/planner/support/in_process.hpp"

namespace textbook_scenarios_test {

TEST_CASE("evaluate's reports of the textbook's scenarios") {
  std::string text;
  for (const char* name : {"codeparrot-110m", "gpt3-175b-1024-a100", "gpt3-6.7b-two-nodes",
                           "mixtral-8x7b-16-h100", "t5-11b-split"}) {
    const std::string command = "evaluate " + std::string(name);
    const std::string report = in_process::printed(command);
    const std::size_t end = report.find("\nSent by each device");
    REQUIRE(end != std::string::npos);
    text += "$ shardplan " + command + "\n" + report.substr(0, end) + "\n";
  }
  CHECK(golden::compare("report_textbook_scenarios.txt", text) == "");
}

TEST_CASE(
    "GPT-3 175B on 1,024 A100s: 44 % of peak and 34 days for 300 billion tokens, within 5 %") {
  const std::string report = in_process::printed("evaluate gpt3-175b-1024-a100 --tokens 300B");
  const auto number_after = [&](const std::string& words) {
    const std::size_t at = report.find(words);
    REQUIRE(at != std::string::npos);
    return std::stod(report.substr(at + words.size()));
  };
  CHECK(number_after("HFU ") == doctest::Approx(44).epsilon(0.05));
  CHECK(number_after("300 B tokens in ") == doctest::Approx(34).epsilon(0.05));
}

}  // namespace textbook_scenarios_test
