// One answer to "which plan is best", whichever command is asked.
#include "planner/search/settled_plan.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/input_file.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/in_process.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace one_answer_test {

using fixtures::contains;
using nlohmann::json;
using program::Scratch;

namespace {

const char* const dense =
    "model: {kind: llama, layers: 16, hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192, "
    "vocab: 32000}\n";
// Ten layers divide into few numbers of stages.
const char* const ten =
    "model: {kind: llama, layers: 10, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, "
    "vocab: 32000}\n";
const char* const experts =
    "model: {kind: moe, layers: 8, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000, "
    "experts: 8, top_k: 2, expert_ffn_hidden: 2048}\n";

std::string on(const std::string& cluster, int devices) {
  return "cluster: {base: " + cluster + ", devices: " + std::to_string(devices) + "}\n";
}
std::string trained(int batch, const std::string& more) {
  return "training: {global_batch: " + std::to_string(batch) + ", sequence: 4096, " + more + "}\n";
}

std::string shipped(const std::string& name) {
  const auto path = fixtures::configs();
  return costmodel::read_file(costmodel::find_config(path, "scenarios", name, {}));
}

// Of each: its devices, batch, stack, precision, ZeRO, margin or what else the search may choose.
std::vector<std::string> scenarios() {
  std::vector<std::string> all;
  for (const char* model : {dense, ten}) {
    for (const int devices : {6, 8, 16})
      all.push_back(model + on("dgx-h100", devices) + trained(24, "stack: megatron-core-2026"));
    for (const char* stack : {"torchtitan", "deepspeed-2021", "megatron-2021", "nemo-2025"})
      all.push_back(model + on("dgx-a100", 8) + trained(16, std::string("stack: ") + stack));
    for (const char* margin : {"0", "0.5", "0.9"})
      all.push_back(model + on("dgx-a100", 4) + trained(16, "stack: megatron-core-2025") +
                    "search: {memory_margin: " + margin + "}\n");
    for (const char* limits : {"zero: [0]", "zero: [1, 3]", "recompute: [full]", "top: 1",
                               "rows: plans", "simpler_within: 0", "simpler_within: 0.03"})
      all.push_back(model + on("dgx-h100", 8) + trained(32, "precision: fp8, stack: nemo-2025") +
                    "search: {" + limits + "}\n");
    // Few sequences leave pipelines of three and four stages.
    for (const auto& [devices, batch] : {std::pair(6, 2), std::pair(8, 2), std::pair(24, 6)}) {
      all.push_back(model + on("dgx-a100", devices) + trained(batch, "stack: megatron-core-2026") +
                    "search: {max_tp: 1}\n");
    }
    all.push_back(model + on("pcie-8x-rtx-4090", 4) + trained(8, "stack: alpa-2022"));
  }
  all.push_back(shipped("llama-3.2-1b-a100-h100"));  // replicas of unequal shares
  all.push_back(shipped("gpt3-175b-selene"));
  for (const int batch : {8, 24})
    all.push_back(experts + on("dgx-h100", 8) + trained(batch, "stack: megatron-core-2025"));
  return all;
}

// What a command says of the best plan; nothing where it says that none fits. What is read is asked
// for by at(): a const json gives for a key that is missing whatever stands there.
struct Answer {
  double iteration = 0, peak = 0;
  json plan;
  bool operator==(const Answer&) const = default;
};

Answer answer_of(const json& evaluated) {
  return {evaluated.at("time").at("iteration_s"), evaluated.at("memory").at("peak_bytes"),
          evaluated.at("plan")};
}

// As a user would write it down, or `plan` does.
std::string with_plan(const std::string& scenario, const std::string& file, json plan) {
  if (plan.contains("stages") || plan.contains("replicas") || plan.at("ep") > 1)
    return in_process::run("shardplan plan " + file + " --format yaml").text;
  plan.erase("devices");
  plan.erase("micro_batches");
  return scenario + "plan: " + plan.dump() + "\n";
}

json asked(const std::string& command) {
  return json::parse(in_process::run("shardplan " + command + " --format json").text);
}

}  // namespace

TEST_CASE("plan, sweep, compare, evaluate and export find the same best plan") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "best");
  int none = 0, uneven = 0, simpler = 0;
  const auto all = scenarios();
  for (std::size_t i = 0; i < all.size(); i += sanitized ? 44 : 1) {  // with experts among them
    const std::string& scenario = all[i];
    CAPTURE(scenario);
    scratch.write("s.yaml", scenario);
    const std::string file = scratch.path() / "s.yaml";
    const json planned = asked("plan " + file);
    const json point =
        asked("sweep " + file + " --set plan=auto --over training.optimizer=adam").at(0);
    if (planned.at("plans").empty()) {
      ++none;
      CHECK(in_process::run("shardplan export " + file + " --set plan=auto --to megatron").status ==
            3);
      continue;
    }
    const Answer best = answer_of(planned.at("plans").at(0));
    // Replicas of unequal shares have no layers of stages.
    uneven += best.plan.value("stage_layers", json::array()).empty() ? 0 : 1;
    simpler += planned.contains("fastest") && !planned.at("fastest").is_null() ? 1 : 0;
    CHECK(point.at("iteration_s").get<double>() == doctest::Approx(best.iteration).epsilon(1e-5));
    CHECK(point.at("peak_gib").get<double>() ==
          doctest::Approx(best.peak / (1 << 30)).epsilon(1e-3));
    CHECK(answer_of(asked("evaluate " + file + " --set plan=auto")) == best);
    scratch.write("best/s.yaml", with_plan(scenario, file, best.plan));
    const std::string written = scratch.path() / "best/s.yaml";
    const json compared = asked("compare " + written + " --with plan=auto");
    CHECK(answer_of(compared.at("scenarios").at(0)) == best);
    CHECK(answer_of(compared.at("scenarios").at(1)) == best);
    if (!contains(scenario, "stack: megatron") || best.plan.contains("replicas")) continue;
    const auto exported = [](const std::string& words) {
      return in_process::run("shardplan export " + words + " --to megatron").text;
    };
    CHECK(exported(file + " --set plan=auto") == exported(written));
  }
  CHECK((sanitized || none > 0));
  CHECK((sanitized || uneven >= 3));
  CHECK((sanitized || simpler >= 3));
}

TEST_CASE("batch and --front start from the same best plan") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "s");
  const auto all = scenarios();
  const auto some = thinned(std::vector<std::size_t>{2, 0, 7, 14}, 2);
  for (const std::size_t i : some) scratch.write(fmt::format("s/{}.yaml", i), all[i]);
  const auto run = program::run(program::words_of("batch s --out r --format json"), scratch);
  const json index = json::parse(run.out);
  CHECK(index.at("scenarios").size() == some.size());
  for (const json& row : index.at("scenarios")) {
    const std::string file = scratch.path() / "s" / (row.at("name").get<std::string>() + ".yaml");
    CAPTURE(file);
    const json front = asked("plan " + file + " --front");
    const Answer best = answer_of(front.at("plans").at(0));
    CHECK(row.at("iteration_s") == best.iteration);
    CHECK(row.at("peak_bytes") == best.peak);
    CHECK(front.at("front").at(0).at("iteration_s") == best.iteration);
    for (const json& point : front.at("device_front").at("points")) {
      const json there = asked(fmt::format("sweep {} --set plan=auto --over cluster.devices={}",
                                           file, point.at("devices").get<int>()))
                             .at(0);
      const double seconds = there.at("iteration_s");
      const bool all_memory = point.at("devices") != best.plan.at("devices");
      // The plan may be the simplest of some within 1 %, of which one that needs less memory is
      // faster.
      CHECK(point.at("iteration_s").get<double>() >= seconds * (all_memory ? 1 - 1e-5 : 0.99));
      if (all_memory)
        CHECK(point.at("iteration_s").get<double>() == doctest::Approx(seconds).epsilon(1e-5));
    }
  }
}

// A published cluster and batch; limits that the best plan keeps, so that a search takes a tenth.
TEST_CASE("a plan that plan refuses is in no sweep and no comparison either") {
  const Scratch scratch;
  scratch.write("l70.yaml",
                "model: llama-3-70b\ncluster: {base: dgx-h100, devices: 64}\n"
                "training: {global_batch: 512, sequence: 8192, stack: megatron-core-2026}\n"
                "search: {max_micro_batch: 1, max_cp: 1, max_vpp: 2, max_tp: 4}\n");
  const std::string file = scratch.path() / "l70.yaml";
  const Answer best = answer_of(asked("plan " + file).at("plans").at(0));
  CHECK(best.plan.at("stage_layers").size() == 4);
  const auto at = [&](const std::string& set) {
    return asked("sweep " + file + " --set plan=auto --over cluster.devices=64" + set).at(0);
  };
  CHECK(at("").at("iteration_s").get<double>() == doctest::Approx(best.iteration).epsilon(1e-5));
  CHECK(at(" --set search.memory_margin=0.3").at("peak_gib").get<double>() < 0.7 * 79.2);
  const json variant = asked("compare " + file + " --set plan.tp=4 --with plan=auto");
  CHECK(answer_of(variant.at("scenarios").at(1)) == best);
}

TEST_CASE("a plan within the memory that a search leaves free fits tightly, and exits with 0") {
  const Scratch scratch;
  scratch.write("qlora.yaml",
                "model: llama-2-70b\ncluster: {base: pcie-8x-rtx-4090, devices: 2}\n"
                "training: {sequence: 512, global_batch: 8, stack: peft, optimizer: adam-8bit, "
                "fine_tuning: {method: qlora, rank: 8, alpha: 16, targets: all-linear}}\n"
                "plan: {tp: 1, pp: 1, micro_batch: 1, recompute: full, zero: 3}\n");
  const std::string file = scratch.path() / "qlora.yaml";
  const auto evaluated = in_process::run("shardplan evaluate " + file);
  CHECK(evaluated.status == 0);
  CHECK(contains(evaluated.text, "fits, tightly: 4.9 % left (search.memory_margin 5 %; chance "));
  CHECK(in_process::run("shardplan plan " + file + " --set plan={}").status == 3);
  const auto searched = in_process::run("shardplan evaluate " + file + " --set plan=auto");
  CHECK(searched.status == 0);
  CHECK(contains(searched.text, "leaves 5 % of device memory free (search.memory_margin)"));
  const auto all = in_process::run("shardplan evaluate " + file + " --set search.memory_margin=0");
  CHECK_FALSE(contains(all.text, "tightly"));
  const auto swept =
      in_process::run("shardplan sweep " + file + " --set plan=auto --over training.sequence=512");
  REQUIRE(swept.warnings.size() == 2);
  CHECK(contains(swept.warnings[1], "at 1 of 1 points no plan leaves so much free"));
}

TEST_CASE("what would make a plan fit does so when it is set, whoever chose the plan") {
  const Scratch scratch;
  scratch.write("own.yaml", std::string(dense) + "cluster: {base: pcie-8x-rtx-4090, devices: 2}\n" +
                                trained(32, "stack: megatron-core-2026") +
                                "plan: {micro_batch: auto, zero: 1, recompute: auto}\n");
  const std::string own = (scratch.path() / "own.yaml").string();
  int set = 0;
  for (const std::string& job :
       {std::string("llama-3-8b --gpus 2xrtx-4090"), std::string("mixtral-8x7b --gpus 8xa100-80gb"),
        std::string("llama-3-8b --gpus 8xh100 --set plan.micro_batch=16"), own}) {
    CAPTURE(job);
    const auto changes = json::parse(in_process::printed("evaluate " + job + " --format json"))
                             .value("fitting_changes", json::array());
    for (const auto& change : changes) {
      std::string command = "evaluate " + job + " --format json";
      for (const json& setting : change.at("set"))  // blanks end a word
        command += " --set " + program::replaced(setting.get<std::string>(), " ", "\t");
      CAPTURE(command);
      const auto got = json::parse(in_process::printed(command));
      CHECK(got.at("memory").at("fits") == true);
      CHECK(got.at("memory").at("peak_bytes").get<double>() ==
            doctest::Approx(change.at("peak_bytes").get<double>()));
      CHECK(got.at("time").at("iteration_s").get<double>() ==
            doctest::Approx(change.at("iteration_s").get<double>()));
      ++set;
    }
  }
  CHECK(set >= 6);
}

}  // namespace one_answer_test
