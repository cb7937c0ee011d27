// The rows of the exports, and what `shardplan export` says of a framework that is none.
#include "planner/commands/export_targets.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"

namespace export_targets_test {

TEST_CASE("the help names every row") {
  std::string names;
  for (const planner::ExportTarget& target : planner::export_targets()) {
    names += (names.empty() ? "" : ", ") + std::string(target.name);
    CHECK_FALSE(target.writes.empty());
    CHECK(bool(target.exported != nullptr));
  }
  CHECK(names == planner::export_target_names);
}

TEST_CASE("a plan in DeepSpeed's words, as script and as JSON") {
  const program::Scratch scratch;
  scratch.write("llama.yaml", cli::llama);
  const std::string plan =
      "export llama.yaml --set training.stack=deepspeed-2021 --set plan.tp=1 --set plan.pp=1 --set "
      "plan.dp=16 --set plan.micro_batch=1 --set plan.zero=3 --set plan.recompute=full --set "
      "plan.sequence_parallel=false --to deepspeed";
  const auto text = program::run(program::words_of(plan), scratch);
  CHECK(text.status == 0);
  CHECK(text.out.starts_with("#!/usr/bin/env bash\n"));
  CHECK(text.out.find("\"stage\": 3") != std::string::npos);
  const auto json = program::run(program::words_of(plan + " --format json"), scratch);
  CHECK(json.status == 0);
  CHECK(text.out.find(json.out) != std::string::npos);
  const auto none = program::run(program::words_of("export tiny-gpt-cpu --to deepsped"), scratch);
  CHECK(none.status == 2);
  CHECK(none.err == fmt::format("shardplan: cannot export to 'deepsped'; did you mean 'deepspeed'? "
                                "allowed: --to {}\n",
                                planner::export_target_names));
}

TEST_CASE("torchtitan's settings as JSON are words, not words in quotes") {
  const auto in = scenarios::read(
      "model: llama-3.1-8b\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 8, "
      "sequence: 8192, precision: bf16, stack: torchtitan}\nplan: {dp: 8, zero: 3}\n");
  for (const planner::ExportTarget& target : planner::export_targets()) {
    if (!target.name.starts_with("torchtitan")) continue;
    const auto out = target.exported(in, costmodel::resolve_plan(in));
    CHECK(out.json.find("\"value\": \"always\"") != std::string::npos);
    CHECK(out.text.find("fsdp_reshard_after_forward = \"always\"") != std::string::npos);
  }
}

TEST_CASE("where no stack is named, the target's own plans, and a note names it") {
  const program::Scratch scratch;
  for (const planner::ExportTarget& target : planner::export_targets()) {
    if (target.stack.empty()) continue;
    CAPTURE(target.name);
    const std::string command =
        fmt::format("export llama-3-70b --gpus 64xh100 --to {}", target.name);
    const auto free = program::run(program::words_of(command), scratch);
    CHECK(free.status == 0);
    CHECK(free.err.find(fmt::format("planned with the stack {}, the target's own", target.stack)) !=
          std::string::npos);
    const auto named = program::run(
        program::words_of(fmt::format("{} --framework {}", command, target.stack)), scratch);
    CHECK(named.out == free.out);
    CHECK(named.err.find("the target's own") == std::string::npos);
  }
}

}  // namespace export_targets_test
