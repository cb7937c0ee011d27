#include "planner/batch/batch_jobs.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "costmodel/base/error.hpp"
#include "tests/run_program.hpp"

namespace batch_jobs_test {

using planner::batch_jobs;
using program::Scratch;

TEST_CASE("folders, patterns and files are each scenario once, in order") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "a");
  scratch.write("a/two.yaml", "model: x\n");
  scratch.write("a/one.yml", "command: sweep --over tp=1,2\n");
  scratch.write("a/note.txt", "");
  scratch.write("a/.hidden.yaml", "");
  const std::string folder = scratch.path().string();
  const auto jobs =
      batch_jobs({folder + "/a/two.yaml", folder + "/a", folder + "/a/*.y*ml"}, "plan --top 3", {});
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].name == "two");
  CHECK(jobs[0].words == std::vector<std::string>{"plan", "--top", "3"});
  CHECK(jobs[1].name == "one");
  CHECK(jobs[1].words == std::vector<std::string>{"sweep", "--over", "tp=1,2"});
  CHECK(jobs[1].fault.empty());
}

TEST_CASE("a link in a folder that leads out of it is not followed") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "a");
  scratch.write("secret", "token:\n");
  std::filesystem::create_symlink("../secret", scratch.path() / "a/x.yaml");
  const std::string folder = scratch.path().string();
  for (const char* operand : {"/a", "/a/*.yaml"}) {
    const auto jobs = batch_jobs({folder + operand}, "plan", {});
    REQUIRE(jobs.size() == 1);
    CHECK(jobs[0].fault.find("lies outside of the scenario's folder") != std::string::npos);
  }
  CHECK(batch_jobs({folder + "/a/x.yaml"}, "plan", {})[0].fault.empty());
}

TEST_CASE("reports of files of one name are told apart by their folders") {
  const Scratch scratch;
  for (const char* name : {"a", "b", "c"}) std::filesystem::create_directory(scratch.path() / name);
  for (const char* name : {"a/x.yaml", "b/x.yaml", "c/index.yaml"}) scratch.write(name, "");
  const std::string folder = scratch.path().string();
  const auto jobs = batch_jobs({folder + "/a", folder + "/b", folder + "/c"}, "plan", {});
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].name == "a-x");
  CHECK(jobs[1].name == "b-x");
  CHECK(jobs[2].name == "c-index");  // index.json is the batch's own
  scratch.write("x.yaml", "");
  scratch.write("x.yml", "");
  CHECK_THROWS_WITH_AS(batch_jobs({folder + "/x.yaml", folder + "/x.yml"}, "plan", {}),
                       doctest::Contains("rename one of them"), costmodel::ConfigError);
}

TEST_CASE("an operand that names nothing, and commands that are no batch's") {
  const Scratch scratch;
  scratch.write("x.yaml", "command: plan --out here\n");
  const std::string folder = scratch.path().string();
  CHECK_THROWS_WITH_AS(batch_jobs({folder + "/*.json"}, "plan", {}),
                       doctest::Contains("names no scenario"), costmodel::ConfigError);
  CHECK(batch_jobs({folder}, "plan", {}).front().fault ==
        "plan: --out is said by the batch; leave it out");
  scratch.write("x.yaml", "model: y\n");
  CHECK(doctest::String(batch_jobs({folder}, "run", {}).front().fault.c_str()) ==
        doctest::Contains("'run': not a command of a batch; allowed: plan, "));
  for (const char* no_words : {"[evaluate, x]", "{evaluate: x}", "\"\""}) {
    scratch.write("x.yaml", std::string("model: y\ncommand: ") + no_words + "\n");
    CHECK(doctest::String(batch_jobs({folder}, "plan", {}).front().fault.c_str()) ==
          doctest::Contains("'': not a command of a batch"));
  }
}

}  // namespace batch_jobs_test
