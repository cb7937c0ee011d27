// The command line as users see it: help and reports, frozen in tests/golden/; where output goes.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"

namespace cli_test {

using cli::heading;
using cli::llama;
using fixtures::contains;
using program::masked;
using program::Run;
using program::run;
using program::Scratch;
using program::words_of;

TEST_CASE("help of the program and of every command is frozen") {
  const Scratch scratch;
  std::string text;
  for (const std::string command :
       {"", "plan ", "evaluate ", "explain ", "explain-job ", "sweep ", "simulate ", "validate ",
        "import ", "export ", "list ", "calibrate "}) {
    const Run help = run(words_of(command + "--help"), scratch);
    CHECK(help.status == 0);
    CHECK(help.err == "");
    CHECK(contains(help.out, "usage: shardplan "));
    text += heading(command + "--help") + help.out + "\n";
  }
  CHECK(golden::compare("help.txt", text) == "");
}

TEST_CASE("every command that help names has a help of its own") {
  const Scratch scratch;
  const std::string help = run({"--help"}, scratch).out;
  const auto from = help.find("commands:\n") + 10, to = help.find("\nflags of");
  for (const auto& line : golden::lines_of(help.substr(from, to - from))) {
    if (line.size() < 3 || line[2] == ' ') continue;  // the sentence above goes on
    CHECK(run({words_of(line).front(), "--help"}, scratch).status == 0);
  }
}

TEST_CASE(
    "launches that are replayed are told by the scenario's own word, wherever they are priced") {
  const Scratch scratch;
  for (const std::string command :
       {"evaluate tiny-gpt-cpu", "explain tiny-gpt-cpu", "plan tiny-gpt-cpu --top 1"}) {
    CAPTURE(command);
    const Run plain = run(words_of(command), scratch);
    CHECK(plain.status == 0);
    CHECK_FALSE(contains(plain.out, "cuda_graph"));
    const Run replayed =
        run(words_of(command + " --set training.overlap.cuda_graph=true"), scratch);
    CHECK(replayed.status == 0);
    CHECK(contains(replayed.out, "cuda_graph: "));
  }
}

TEST_CASE("reports are frozen") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string selene =
      "gpt3-175b-selene --set plan.tp=8 --set plan.pp=16 --set plan.recompute=full";
  const std::string limits =
      " --set search.max_tp=8 --set search.max_vpp=2 --set search.max_micro_batch=2";
  const std::string two_stacks =
      "t5-11b-a100 --set plan.tp=8 --set plan.pp=4 --set plan.micro_batch=32 "
      "--set plan.stage_layers=[9,9,12,18]";
  struct Report {
    std::string file, command;
  };
  const std::vector<Report> reports{
      {"plan.txt", "plan gpt3-175b-selene --top 3" + limits},
      {"plan.md", "plan gpt3-175b-selene --top 3 --front --format md" + limits},
      {"plan.csv", "plan gpt3-175b-selene --format csv" + limits},
      {"plan.yaml", "plan gpt3-175b-selene --format yaml" + limits},
      {"plan_nothing_fits.txt",
       "plan llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={}"},
      {"evaluate.txt", "evaluate " + selene},
      {"evaluate.md", "evaluate llama.yaml --format md"},
      {"evaluate_tiny.txt", "evaluate tiny-gpt-cpu"},
      {"evaluate_llama.txt", "evaluate llama.yaml"},
      {"explain.txt", "explain llama.yaml"},
      {"explain.md", "explain tiny-gpt-cpu --format md"},
      {"explain_memory.txt", "explain llama.yaml --memory"},
      {"explain_zero_bubble.txt",
       "explain llama.yaml --set training.stack=zero-bubble-fork --set plan.tp=1 --set plan.pp=8 "
       "--set plan.dp=2 --set plan.micro_batch=1 --set plan.sequence_parallel=false "
       "--set plan.schedule=zero-bubble-h1"},
      {"simulate_zero_bubble.txt",
       "simulate llama.yaml --set training.stack=zero-bubble-fork --set plan.tp=2 --set plan.pp=4 "
       "--set plan.dp=2 --set plan.micro_batch=4 --set plan.schedule=zero-bubble-v"},
      {"evaluate_t5.txt", "evaluate " + two_stacks},
      {"explain_t5.txt", "explain " + two_stacks},
      {"simulate.txt", "simulate tiny-gpt-cpu"},
      {"simulate_llama.txt",
       "simulate llama.yaml --set plan.vpp=2 --set plan.pp=4 --set plan.dp=2"},
      {"sweep.txt", "sweep llama.yaml --set plan.dp=auto --over tp=1,2,3,4 --over micro_batch=1,2"},
      {"sweep.csv",
       "sweep llama.yaml --set plan.dp=auto --over tp=2,3 --over training.sequence=4096,8192 "
       "--format csv"},
      {"sweep.md", "sweep tiny-gpt-cpu --over micro_batch=1,2,4,8 --format md"},
  };
  for (const auto& report : reports) {
    CAPTURE(report.command);
    const Run done = run(words_of(report.command), scratch);
    CHECK(done.status == (report.file == "plan_nothing_fits.txt" ? 3 : 0));
    CHECK(golden::compare("report_" + report.file, masked(done.err + done.out)) == "");
  }
}

TEST_CASE("output goes where it is asked to, whole") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const Run printed = run(words_of("evaluate llama.yaml"), scratch);
  const Run silent = run(words_of("evaluate llama.yaml --out report.txt"), scratch);
  CHECK(silent.out == "");
  CHECK(scratch.read("report.txt") == printed.out);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "report.txt.part"));
  scratch.write("kept.txt", "old\n");
  std::filesystem::create_symlink("kept.txt", scratch.path() / "link.txt");
  CHECK(run(words_of("evaluate llama.yaml --out link.txt"), scratch).status == 0);
  CHECK(std::filesystem::is_symlink(scratch.path() / "link.txt"));
  CHECK(scratch.read("kept.txt") == printed.out);
  CHECK(run(words_of("evaluate llama.yaml --out /dev/null"), scratch).status == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));  // not renamed over
}

TEST_CASE("a full disk is told, not passed over") {
  if (!std::filesystem::is_character_file("/dev/full")) return;
  const Scratch scratch;
  for (const std::string arguments :
       {"plan gpt3-175b-selene", "list stacks", "evaluate tiny-gpt-cpu"}) {
    const Run failed = run(words_of(arguments), scratch, program::default_patience, "/dev/full");
    CHECK(failed.status == 2);
    CHECK(contains(failed.err, "standard output cannot be written"));
  }
}

TEST_CASE("warnings go to standard error, and --quiet keeps them back") {
  const Scratch scratch;
  const std::string command = "evaluate gpt3-175b-selene";  // does not fit
  const Run loud = run(words_of(command), scratch),
            quiet = run(words_of(command + " --quiet"), scratch);
  CHECK(loud.err.starts_with("warning: "));
  CHECK(quiet.err == "");
  CHECK(quiet.out == loud.out);
}

TEST_CASE("colour only when asked, and it changes no word") {
  const Scratch scratch;
  const Run plain = run(words_of("evaluate tiny-gpt-cpu"), scratch);
  const Run bright = run(words_of("evaluate tiny-gpt-cpu --color always"), scratch);
  CHECK_FALSE(contains(plain.out, "\033"));
  std::string stripped;
  for (std::size_t i = 0; i < bright.out.size(); ++i) {
    if (bright.out[i] == '\033') {
      i = bright.out.find('m', i);
    } else {
      stripped += bright.out[i];
    }
  }
  CHECK(bright.out != plain.out);
  CHECK(stripped == plain.out);
}

TEST_CASE("every key is listed once, with meaning and values") {
  const Scratch scratch;
  const auto keys = nlohmann::json::parse(run({"list", "keys", "--format", "json"}, scratch).out);
  std::set<std::string> names;
  for (const auto& row : keys) {
    CHECK(names.insert(row["key"].get<std::string>()).second);
    CHECK_FALSE(row["meaning"].get<std::string>().empty());
    CHECK_FALSE(row["values"].get<std::string>().empty());
  }
  for (const auto* key :
       {"plan.tp", "plan.schedule", "plan.stages[].recompute", "training.overlap.cuda_graph",
        "stack.launch.collective_s", "model.kv_lora_rank", "cluster.tiers[].groups[].devices",
        "cluster.join", "training.stack", "search.max_tp",
        "device.gemm.precision_efficiency.fp8"}) {
    CAPTURE(key);
    CHECK(names.contains(key));
  }
}

TEST_CASE("lists name what a scenario may name") {
  const Scratch scratch;
  for (const auto& [kind, name] : {std::pair<std::string, std::string>{"models", "gpt3-175b"},
                                   {"devices", "h100-sxm5-80gb"},
                                   {"clusters", "selene"},
                                   {"stacks", "megatron-2021"},
                                   {"scenarios", "tiny-gpt-cpu"}}) {
    const Run list = run({"list", kind}, scratch);
    CHECK(list.status == 0);
    CHECK(contains(list.out, name));
    CHECK(run({"list", kind, "--format", "csv"}, scratch).status == 0);
    CHECK(run({"list", kind, "--format", "json"}, scratch).status == 0);
  }
}

}  // namespace cli_test
