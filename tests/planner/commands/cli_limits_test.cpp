// What does not fit, and sizes at the limits: answered, or refused in a sentence.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/planner/support/few_plans.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace cli_limits_test {

using cli::llama;
using fixtures::contains;
using Json = nlohmann::json;
using program::Run;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

// With sanitizers numbers are a tenth, a fiftieth what is priced layer by layer or replayed stage
// by stage, and few plans are searched.
std::string sized(std::string command) {
  if (!sanitized) return command;
  command = program::replaced(command, "100000", "10000");
  command = program::replaced(command, "layers=3000", "layers=300");
  for (const std::string key : {"layers=", "pp:\t", "devices="})
    command = program::replaced(command, key + "10000", key + "2000");
  return command + few_plans::options_if_sanitized;
}

}  // namespace

TEST_CASE("when nothing fits, the status is 3 and the report says why and what would help") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command :
       {"plan llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={}",
        "plan llama.yaml --set cluster.devices=1 --set plan={}",
        "plan tiny-gpt-cpu --set model=llama-3-70b --set plan={}"}) {
    CAPTURE(command);
    const Run text = run(words_of(command + few_plans::options_if_sanitized), scratch);
    CHECK(text.status == 3);
    CHECK(contains(text.out, "What stands in the way"));
    CHECK(contains(text.out, "What would help"));
  }
}

TEST_CASE("keys written auto of which none fits are predicted by the leanest choice") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string scenario =
      " llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={} "
      "--set plan.tp=auto --set plan.recompute=auto";
  const Run simulated = run(words_of("simulate" + scenario), scratch);
  CHECK(simulated.status == 0);
  CHECK(contains(simulated.err, "note: plan: no choice of tp, recompute fits in memory"));
  if (sanitized) return;  // what would help is many searches
  const Run text = run(words_of("evaluate" + scenario), scratch);
  CHECK(text.status == 3);
  CHECK(contains(text.out, "t 8 · p 1"));
  CHECK(contains(text.out, "recompute full"));
  CHECK(contains(text.out, "DOES NOT FIT"));
  CHECK(contains(text.out,
                 "plan: no choice of tp, recompute fits in memory; this is the one that "
                 "needs least"));
  const Run json = run(words_of("evaluate" + scenario + " --format json"), scratch);
  CHECK(contains(json.out, "\"fits\": false"));
  CHECK(contains(json.out, "this is the one that needs least"));
}

TEST_CASE("without a plan nothing is split, with a note, and a plan that fits is named") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string scenario =
      "evaluate llama.yaml --set plan={} --set model=llama-3-70b --set cluster.devices=64";
  const auto unsplit = Json::parse(run(words_of(scenario + " --format json"), scratch).out);
  CHECK(contains(unsplit["notes"].dump(), "no key is written, so tp, pp, cp and ep are 1"));
  const auto& changes = unsplit["fitting_changes"];
  const auto chosen = std::ranges::find_if(changes, [](const Json& change) {
    return contains(change["change"].get<std::string>(), "all keys chosen anew");
  });
  REQUIRE(chosen != changes.end());
  auto words = words_of(scenario + " --format json");
  for (const Json& setting : (*chosen)["set"])
    words.insert(words.end(), {"--set", setting.get<std::string>()});
  const Run fits = run(words, scratch);
  CHECK(fits.status == 0);
  CHECK(Json::parse(fits.out)["time"]["iteration_s"] == (*chosen)["iteration_s"]);
  CHECK_FALSE(contains(fits.out, "no key is written"));
}

TEST_CASE("an export of which no choice of the keys written auto fits names what would, and how") {
  const Scratch scratch;
  const Run refused = run(words_of("export llama-3-8b --gpus 8xh100 --to megatron --set "
                                   "plan.micro_batch=auto"),
                          scratch);
  CHECK(refused.status == 3);
  CHECK(contains(refused.err, "no choice of micro_batch fits in memory"));
  CHECK_FALSE(contains(refused.err, "Nothing fits"));
  CHECK(contains(refused.err,
                 "shardplan export llama-3-8b --gpus 8xh100 --set plan.dp=8 --set "
                 "plan.micro_batch=1 --set plan.zero=2 --to megatron\n"));
  const Run one = run(words_of("export llama-3-8b --gpus 8xh100 --to megatron --set "
                               "plan.dp=8 --set plan.micro_batch=1 --set plan.zero=2"),
                      scratch);
  CHECK(one.status == 0);
}

TEST_CASE("layers that do not divide take the framework's layout, or the fault tells what would") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string odd =
      "evaluate llama.yaml --set model.base=llama-3-8b --set model.layers=61 --set plan={pp:\t8}";
  const Run taken = run(words_of(odd), scratch);
  CHECK(taken.status == 3);  // laid out, and too large
  CHECK(contains(taken.out,
                 "plan: 61 layers do not divide into 8 stages; megatron-core-2025 lays "
                 "them out as [8, 8, 8, 8, 8, 8, 8, 5]"));
  const Run open = run(words_of(odd + " --set plan.micro_batch=auto"), scratch);
  CHECK(open.status == 3);
  CHECK(contains(open.out, "[8, 8, 8, 8, 8, 8, 8, 5]"));
  const Run chunks = run(words_of(odd + " --set plan.pp=4 --set plan.vpp=2"), scratch);
  CHECK(contains(chunks.out, "lays them out as [8, 8, 8, 8, 8, 8, 8, 5]"));
  const Run refused = run(words_of(odd + " --set training.stack=megatron-2022"), scratch);
  CHECK(refused.status == 2);
  CHECK(
      contains(refused.err,
               "61 layers do not divide into pp 8 x vpp 1 = 8 stages; choose pp x vpp among 1, 2, "
               "3, 7, 9, 21, 31, 61, or give stage_layers, such as [8, 8, 8, 8, 8, 8, 8, 5]"));
}

TEST_CASE("a search over layouts that time cuts short before a plan says so") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string command =
      "plan llama.yaml --set plan={} --set model=llama-3.1-405b --set cluster.devices=8 --strategy "
      "alpa --time-limit 0.000001";
  const Run text = run(words_of(command), scratch);
  CHECK(text.status == 3);
  CHECK(contains(text.out, "No plan was found: time ran out before a plan was found"));
  CHECK_FALSE(contains(text.out, "What stands in the way"));
  const Run json = run(words_of(command + " --format json"), scratch);
  CHECK(json.status == 3);
  CHECK(contains(json.out, "\"time_ran_out\": true"));
  CHECK(contains(json.out, "\"reason\": \"time ran out before a plan was found"));
  CHECK_FALSE(contains(json.out, "obstacles"));
}

TEST_CASE("a time limit ends every search but the grid's") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string limit = " --time-limit 0.000001";
  const Run mixed = run(words_of("plan llama-3-8b-a100-h100" + limit), scratch);
  CHECK(mixed.status == 3);
  CHECK(contains(mixed.out, "No plan was found: time ran out before a plan was found."));
  const Run alike = run(words_of("plan llama.yaml --set plan={}" + limit), scratch);
  CHECK(alike.status == 0);
  CHECK(contains(alike.out, "Time ran out: these are the best plans so far."));
  const Run grid = run(words_of("plan llama.yaml --strategy grid" + limit), scratch);
  CHECK(grid.status == 2);
  CHECK(contains(grid.err, "--time-limit does not go with --strategy grid"));
}

TEST_CASE("sizes at the limits are answered, or refused in a sentence, in reasonable time") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command : {"plan llama.yaml --set plan={} --set cluster.devices=1000000 "
                                    "--set training.global_batch=1000000",
                                    "evaluate llama.yaml --set plan={} --set "
                                    "cluster.devices=1000000 --set training.global_batch=1000000",
                                    "plan llama.yaml --set plan={} --set cluster.devices=999983 "
                                    "--set training.global_batch=999983",
                                    "evaluate llama.yaml --set plan={} --set model.layers=100000",
                                    "evaluate llama.yaml --set plan.pp=16 --set plan.dp=1 --set "
                                    "plan.tp=1 --set plan.sequence_parallel=false"
                                    " --set model.layers=100000",
                                    "evaluate llama.yaml --set training.sequence=100000000",
                                    "evaluate llama.yaml --set training.sequence=1 --set plan={} "
                                    "--set training.global_batch=16",
                                    "plan llama.yaml --set training.global_batch=1 --set plan={}",
                                    "evaluate llama.yaml --set model.vocab=100000000",
                                    "simulate llama.yaml --set training.global_batch=65536"}) {
    CAPTURE(command);
    const Run done = run(words_of(sized(command)), scratch);
    const bool clean = done.status == 0 || done.status == 2 || done.status == 3;
    CHECK(clean);
    CHECK_FALSE(contains(done.out, "nan"));
    CHECK_FALSE(contains(done.out, "inf "));
    CHECK_FALSE((done.out + done.err).empty());
  }
}

// Valid sizes that this version does not answer: the search prices each number of recomputed
// layers, the simulator replays each micro-batch, keys of its caches have 16 bits for a stage
// count.
TEST_CASE("many layers, batches and stages are answered or refused too") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command :
       {"plan llama.yaml --set plan={} --set model.layers=100000",
        "plan llama.yaml --set plan={} --set model.layers=3000 --set cluster.devices=64",
        "evaluate llama.yaml --set training.global_batch=1000000000",
        "plan llama.yaml --set training.global_batch=1000000000",
        "evaluate llama.yaml --set plan={pp:\t100000} --set model.layers=100000 --set "
        "cluster.devices=100000 --set training.global_batch=4"}) {
    CAPTURE(command);
    const Run done = run(words_of(sized(command)), scratch);
    const bool clean = done.status == 0 || done.status == 2 || done.status == 3;
    CHECK(clean);
  }
}

TEST_CASE("what is fixed obeys the rules of the stack in a search too") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string fixed : {"plan={zero:\t3}", "plan={recompute:\tselective}",
                                  "search.zero=[2,3]", "plan={sequence_parallel:\ttrue,tp:\t2}"}) {
    CAPTURE(fixed);
    const Run failed =
        run({"plan", "llama.yaml", "--set", "plan={}", "--set", "training.stack=megatron-2021",
             "--set", fixed, "--format", "yaml", "--out", "found.yaml"},
            scratch);
    // Either the stack has no such thing, or nothing is valid, or what was found is.
    if (failed.status == 2) CHECK(contains(failed.err, "stack megatron-2021 "));
    if (failed.status == 2 || failed.status == 3) continue;
    CHECK(failed.status == 0);
    CHECK(run({"evaluate", "found.yaml"}, scratch).status == 0);
  }
}

TEST_CASE("a fixed sequence_parallel is kept by the search, or refused as the stack's fault") {
  const Scratch scratch;
  const std::vector<std::string> plan{"plan", "gpt3-175b-selene", "--set",
                                      "plan.sequence_parallel=true"};
  const Run refused = run(plan, scratch);
  CHECK(refused.status == 2);
  CHECK(contains(refused.err,
                 "--set plan.sequence_parallel=true: stack megatron-2021 has no "
                 "sequence parallelism; choose another training.stack"));
  auto newer = plan;
  newer.insert(newer.end(), {"--set", "training.stack=megatron-core-2025", "--format", "csv"});
  const Run kept = run(newer, scratch);
  CHECK(kept.status == 0);
  const auto cells = [](const std::string& line) {
    std::vector<std::string> all;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) all.push_back(cell);
    return all;
  };
  std::istringstream lines(kept.out);
  std::string line;
  std::getline(lines, line);
  const auto titles = cells(line);
  const auto column = static_cast<std::size_t>(
      std::find(titles.begin(), titles.end(), "sequence_parallel") - titles.begin());
  REQUIRE(column < titles.size());
  int rows = 0;
  for (; std::getline(lines, line); ++rows) CHECK(cells(line).at(column) == "true");
  CHECK(rows > 1);
}

TEST_CASE("what is said when nothing fits keeps what is fixed, and tells where looking ended") {
  const Scratch scratch;
  const Run fixed = run(words_of("plan gpt3-175b-selene --set plan.dp=1536"), scratch);
  CHECK(fixed.status == 3);
  const auto help = fixed.out.find("What would help");
  REQUIRE(help != std::string::npos);
  const std::string obstacles = fixed.out.substr(0, help), remedies = fixed.out.substr(help);
  CHECK(contains(obstacles, "d 1536"));
  CHECK_FALSE(contains(obstacles, "d 192"));
  CHECK_FALSE(contains(obstacles, "d 48"));
  CHECK(contains(remedies, "free plan.dp: "));
  // Once, though the leanest of all is also what people try first.
  const auto line = obstacles.find("the leanest of all, ");
  REQUIRE(line != std::string::npos);
  const std::string plan = obstacles.substr(line + 20, obstacles.find(':', line) - line - 20);
  CHECK(obstacles.find(plan) == line + 20);

  const Run small =
      run(words_of("plan gpt3-175b-selene --set model=gpt2 --set cluster.devices=4096 "
                   "--set training.global_batch=64 --set training.sequence=1024"),
          scratch);
  CHECK(small.status == 3);
  CHECK(contains(small.out, "fewer devices: cluster.devices="));
  CHECK(contains(small.out, "another batch: training.global_batch="));

  const Run ended =
      run(words_of("plan tiny-gpt-cpu --set model=llama-3-70b --set plan={}"), scratch);
  CHECK(ended.status == 3);
  CHECK(contains(ended.out, "(more than the 8 whose links are described)"));
}

TEST_CASE("without a plan, --format yaml or csv writes no file and tells why on standard error") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string nothing = " llama.yaml --set plan={} --set cluster.devices=1";
  for (const std::string& command :
       {"plan" + nothing + " --format yaml", "plan" + nothing + " --format csv",
        "export" + nothing + " --set plan.tp=auto --to megatron"}) {
    CAPTURE(command);
    const Run printed = run(words_of(command), scratch);
    CHECK(printed.status == 3);
    CHECK(printed.out == "");
    CHECK(contains(printed.err, "What stands in the way"));
    const Run kept = run(words_of(command + " --out answer"), scratch);
    CHECK(kept.status == 3);
    CHECK(contains(kept.err, "What stands in the way"));
    CHECK_FALSE(std::filesystem::exists(scratch.path() / "answer"));
  }
}

TEST_CASE("export and simulate warn of a plan that does not fit, or that nobody asked for") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command : {"export gpt3-175b-selene --to megatron",
                                    "simulate gpt3-175b-selene --set training.global_batch=3072"}) {
    CAPTURE(command);
    const Run done = run(words_of(command), scratch);
    CHECK(done.status == 0);
    CHECK(contains(done.err, "warning: the plan does not fit in memory: stage 0 needs "));
    const std::string asked = command.substr(command.find(' ') + 1);
    CHECK(contains(done.err, "shardplan plan " + asked.substr(0, asked.find(" --to")) +
                                 " --format yaml --out best.yaml"));
  }
  const Run fitting = run(words_of("export llama.yaml --to megatron"), scratch);
  CHECK(fitting.status == 0);
  CHECK_FALSE(contains(fitting.err, "does not fit"));
  CHECK_FALSE(contains(fitting.err, "best.yaml"));
}

TEST_CASE("evaluate of a plan that does not fit ends with status 3, and says so first") {
  const Scratch scratch;
  const std::string command = "evaluate gpt3-175b-selene --set plan.tp=8 --set plan.pp=16";
  for (const std::string format : {"text", "md", "json", "yaml", "html"}) {
    CAPTURE(format);
    const Run done = run(words_of(command + " --format " + format), scratch);
    CHECK(done.status == 3);
    CHECK(done.out.size() > 200);  // the report as usual
    if (format != "text" && format != "md") continue;
    const auto verdict = done.out.find("Does not fit: stage 0 needs 79.99 GiB of 79.15 GiB");
    CHECK(verdict < done.out.find("Iteration"));
  }
  CHECK(run(words_of(command + " --out answer.json --format json"), scratch).status == 3);
  CHECK(contains(scratch.read("answer.json"), "\"fits\": false"));
  // Rows of a sweep and columns of a comparison may not fit.
  CHECK(run(words_of("sweep gpt3-175b-selene --over pp=16,24 --set plan.tp=8"), scratch).status ==
        0);
  CHECK(run(words_of("compare gpt3-175b-selene --with plan.tp=4"), scratch).status == 0);
}

TEST_CASE("a search's margin is kept by no plan that only just fits") {
  const Scratch scratch;
  const std::string command = "evaluate gpt3-175b-selene --set plan.tp=8 --set plan.pp=24";
  const Run usual = run(words_of(command), scratch);  // 7.7 % left
  CHECK(contains(usual.out, "on the fullest stage: fits (chance "));
  const Run wide = run(words_of(command + " --set search.memory_margin=0.1"), scratch);
  CHECK(wide.status == 0);
  CHECK(contains(wide.out, "fits, tightly: 7.7 % left"));
}

TEST_CASE("a sweep without one answer ends with status 3") {
  const Scratch scratch;
  CHECK(run(words_of("sweep tiny-gpt-cpu --over tp=8,16"), scratch).status == 3);
  CHECK(run(words_of("sweep tiny-gpt-cpu --over micro_batch=1,3"), scratch).status == 0);
}

TEST_CASE("what the scenario fixes is named beside the proof and the steps") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const Run fixed = run(words_of("plan llama.yaml"), scratch);
  CHECK(fixed.status == 0);
  CHECK(contains(fixed.out,
                 "fixed by the scenario: tp, pp, dp, micro_batch, sequence_parallel, zero (`--set "
                 "plan={}` frees them)"));
  CHECK(contains(fixed.out, "(fixed)"));
  const Run open = run(words_of("plan llama.yaml --set plan={}"), scratch);
  CHECK_FALSE(contains(open.out, "fixed by the scenario"));
  CHECK_FALSE(contains(open.out, "(fixed)"));
}

TEST_CASE("a strategy that devices of several kinds rule out is told as such") {
  const Scratch scratch;
  const std::string mixed = "plan llama-3-8b-a100-h100";
  if (!sanitized) CHECK_FALSE(contains(run(words_of(mixed), scratch).out, "instead."));
  const Run grid = run(words_of(mixed + " --strategy grid"), scratch);
  CHECK(grid.status == 0);
  CHECK(contains(grid.out, "this is --strategy meshes instead."));
}

TEST_CASE("a plan that leaves less memory than a search would fits tightly") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string two =
      "plan llama.yaml --set plan={} --set cluster.devices=2 --set training.loss=flash";
  const std::string all = two + " --set search.memory_margin=0";
  CHECK_FALSE(contains(run(words_of(all), scratch).out, "tightly"));
  run(words_of(all + " --format yaml --out all.yaml"), scratch);
  const Run tight = run(words_of("evaluate all.yaml --set search.memory_margin=0.06"), scratch);
  CHECK(tight.status == 0);
  CHECK(contains(tight.out, "fits, tightly: "));
  CHECK(contains(tight.out, "% left (search.memory_margin 6 %; chance "));
  const Run roomy = run(words_of(two), scratch);
  CHECK(roomy.status == 0);
  CHECK_FALSE(contains(roomy.out, "tightly"));
  CHECK(contains(roomy.out, "Plans leave 5 % of device memory free (search.memory_margin)"));
}

}  // namespace cli_limits_test
