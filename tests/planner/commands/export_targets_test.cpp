// The rows of the exports, and what `shardplan export` says of a framework that is none.
#include "planner/commands/export_targets.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "planner/commands/export_command.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/planner/support/few_plans.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

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
  const auto served = program::run(program::words_of("export tiny-gpt-cpu --to vllm"), scratch);
  CHECK(served.status == 2);
  CHECK(served.err.find("--to vllm is of serving") != std::string::npos);
}

TEST_CASE("a plan that no export of its stack writes is noted, with the reason") {
  const auto note = [](const char* stack, const std::string& plan) {
    const auto s = scenarios::read(fmt::format(
        "model: llama-3.1-8b\ncluster: {{base: dgx-h100, devices: 8}}\ntraining: {{global_batch: "
        "8, sequence: 8192, precision: bf16, stack: {}}}\nplan: {{{}}}\n",
        stack, plan));
    return planner::export_note(s, costmodel::resolve_plan(s));
  };
  CHECK(note("torchtitan", "dp: 8, zero: 3") == "");
  CHECK(note("torchtitan", "cp: 2, cp_comm: a2a, dp: 4, zero: 3")
            .starts_with("export --to torchtitan does not write this plan: torchtitan 0.2.2: "));
  CHECK(note("megatron-core-2026", "tp: 2, dp: 4, zero: 0, offload: optimizer")
            .starts_with("export --to megatron does not write this plan: Megatron-LM: "));
  CHECK(note("megatron-2021", "tp: 2, dp: 4") == "");  // no target writes for it
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

TEST_CASE("a target that a refusal names writes the plan") {
  const program::Scratch scratch;
  int named = 0;
  const std::vector<std::string> models{"t5-11b", "bert-large", "mamba-2.8b", "gemma-2-9b",
                                        "qwen1.5-moe-a2.7b"};
  for (const std::string& model : thinned(models, 2)) {
    for (const planner::ExportTarget& target : planner::export_targets()) {
      const std::string plan = fmt::format(
          "export {} --gpus 8xh100 --sequence 512 --framework megatron-core-2026 --set plan.tp=1 "
          "--set plan.zero=2 --set plan.micro_batch=1 --to ",
          model);
      CAPTURE(plan);
      CAPTURE(target.name);
      const auto refused =
          program::run(program::words_of(plan + std::string(target.name)), scratch);
      CHECK((refused.status == 0 || refused.status == 2));
      const std::string_view words = "export it --to ";
      const std::size_t at = refused.err.find(words);
      if (refused.status == 0 || at == std::string::npos) continue;
      ++named;
      std::string others = refused.err.substr(at + words.size());
      others = others.substr(0, others.find_first_of("\n"));
      const std::size_t more = others.find(", or ");
      const std::string first = others.substr(0, std::min(more, others.find(", ")));
      const auto other = program::run(program::words_of(plan + first), scratch);
      CAPTURE(refused.err);
      CHECK(other.status == 0);
    }
  }
  CHECK(named > 0);
  const auto t5 =
      program::run(program::words_of("export t5-11b --gpus 8xh100 --to nanotron"), scratch);
  CHECK(t5.status == 2);
  CHECK(t5.err.find("megatron") == std::string::npos);
}

TEST_CASE("where no stack is named, the target's own plans, and a note names it") {
  const program::Scratch scratch;
  for (const planner::ExportTarget& target : planner::export_targets()) {
    if (target.stack.empty()) continue;
    CAPTURE(target.name);
    const std::string command =
        fmt::format("export {} --to {}{}",
                    sanitized ? "llama-3-8b --gpus 8xh100" : "llama-3-70b --gpus 64xh100",
                    target.name, few_plans::options_if_sanitized);
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
