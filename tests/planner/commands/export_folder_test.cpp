// Exports as folders: what is in them, that bash reads them, and that the scenario evaluates.
#include "planner/commands/export_folder.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"

namespace export_folder_test {

namespace {

auto saved(const program::Scratch& scratch, const std::string& more) {
  scratch.write("llama.yaml", cli::llama);
  return program::run(program::words_of("export llama.yaml --save-dir job " + more), scratch);
}

bool bash_reads(const program::Scratch& scratch, const std::string& file) {
  return std::system(("bash -n " + (scratch.path() / file).string()).c_str()) == 0;
}

}  // namespace

TEST_CASE("a folder has a script, a smoke test, the scenario, the settings and the reasons") {
  const program::Scratch scratch;
  const auto out = saved(scratch, "--to megatron");
  CHECK(out.status == 0);
  CHECK(out.out ==
        "job/launch.sh\njob/smoke_test.sh\njob/scenario.yaml\njob/settings.json\njob/README.md\n");
  for (const char* script : {"job/launch.sh", "job/smoke_test.sh"}) {
    CHECK(access((scratch.path() / script).c_str(), X_OK) == 0);
    CHECK(bash_reads(scratch, script));
  }
  CHECK(scratch.read("job/launch.sh").find("--train-iters 20") != std::string::npos);
  CHECK(scratch.read("job/smoke_test.sh").find("--train-iters 10") != std::string::npos);
  const std::string text = scratch.read("job/README.md");
  for (const char* part : {"# llama for megatron", "## Start", "## Files", "## What was chosen",
                           "## Why\n\n- ", "Plans one step away:"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  CHECK(program::run(program::words_of("evaluate job/scenario.yaml"), scratch).status == 0);
}

TEST_CASE("each launcher has its own names") {
  const program::Scratch scratch;
  CHECK(saved(scratch, "--to kubernetes").out.starts_with("job/job.yaml\njob/smoke_test.yaml\n"));
  CHECK(scratch.read("job/smoke_test.yaml").find("--train-iters 10") != std::string::npos);
  CHECK(saved(scratch, "--to megatron-bridge --launcher slurm").status == 0);
  CHECK(scratch.read("job/README.md").find("sbatch smoke_test.sh") != std::string::npos);
  CHECK(scratch.read("job/smoke_test.sh").find("train.train_iters=10") != std::string::npos);
}

TEST_CASE("each target has its words for ten iterations, or leaves them to its program") {
  const std::string own =
      "exec run \"$0\" \"$@\"\nstart --train-iters 20 train.train_iters=20 train_steps: 20 "
      "max_steps "
      "= 20 \"$@\"\n";
  for (const planner::ExportTarget& target : planner::export_targets()) {
    const std::string text = planner::smoke_test(target, own);
    CHECK(text.empty() == (target.name == "deepspeed"));
    if (!text.empty()) CHECK(text.find("10", text.find("start")) != std::string::npos);
    if (!text.empty()) CHECK(text.starts_with("exec run \"$0\" \"$@\"\n"));
  }
}

}  // namespace export_folder_test
