// `shardplan doctor` as a user runs it.
#include "planner/commands/doctor_command.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace doctor_command_test {

using fixtures::contains;
using program::Run;
using program::run;
using program::Scratch;

TEST_CASE("an installation that is well: status 0, and what it has") {
  const Scratch scratch;
  const Run text = run({"doctor", "--format", "json"}, scratch);
  CHECK(text.status == 0);
  const auto rows = nlohmann::json::parse(text.out);
  for (const char* what : {"program", "machine", "configs: models", "self-test"}) {
    CAPTURE(what);
    const auto at =
        std::ranges::find_if(rows, [&](const auto& row) { return row["what"] == what; });
    REQUIRE(at != rows.end());
    CHECK((*at)["state"] == "ok");
  }
}

TEST_CASE("a file of configs that cannot be read is named, with status 3") {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "mine" / "models");
  scratch.write("mine/models/broken.yaml", "kind: llama\nlayers: many\n");
  const Run text = run({"doctor", "--config-path", "mine"}, scratch);
  CHECK(text.status == 3);
  CHECK(contains(text.out, "WRONG"));
  CHECK(contains(text.out, "broken"));
}

TEST_CASE("help names the other doctor") {
  const Scratch scratch;
  CHECK(contains(run({"doctor", "--help"}, scratch).out, "explain-job"));
  CHECK(contains(run({"explain-job", "--help"}, scratch).out, "doctor"));
}

}  // namespace doctor_command_test
