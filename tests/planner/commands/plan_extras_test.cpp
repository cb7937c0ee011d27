// The parts that flags add to the reports of plan and evaluate.
#include "planner/commands/plan_extras.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"

namespace plan_extras_test {

using fixtures::contains;
using program::run;
using program::Scratch;
using program::words_of;

TEST_CASE("the spreads are those of fit.yaml, and each names a number that a scenario may have") {
  const auto stated = planner::stated_spreads(fixtures::configs());
  REQUIRE(stated.size() > 30);
  const auto products = std::ranges::find_if(stated, [](const planner::StatedSpread& one) {
    return one.key == "gemm.efficiency" &&
           std::ranges::find(one.files, "devices/h100-sxm5-80gb") != one.files.end();
  });
  REQUIRE(products != stated.end());
  CHECK(products->spread == 0.1);
  CHECK(planner::stated_spreads({}).empty());
}

TEST_CASE("the default report is the one without parts, which follow it") {
  const Scratch scratch;
  const auto report = run(words_of("evaluate gpt3-175b-selene --quiet"), scratch);
  const auto more = run(words_of("evaluate gpt3-175b-selene --sensitivity --quiet"), scratch);
  CHECK(report.status == 3);  // without a plan of its own, and too large
  CHECK(more.out.starts_with(report.out));
  CHECK(contains(more.out.substr(report.out.size()), "rate of products"));
  CHECK(contains(more.out.substr(report.out.size()), "configs/fit.yaml"));
}

TEST_CASE("flags that do not go together are told") {
  const Scratch scratch;
  for (const char* command :
       {"plan tiny-gpt-cpu --sensitivity --format csv", "plan tiny-gpt-cpu --all --format yaml",
        "plan tiny-gpt-cpu --all --strategy meshes", "plan llama-3-8b-a100-h100 --all",
        "plan tiny-gpt-cpu --upgrades --format yaml",
        "evaluate tiny-gpt-cpu --sensitivity --format yaml",
        "plan tiny-gpt-cpu --upgrades --strategy meshes", "plan llama-3-8b-a100-h100 --sensitivity",
        "plan llama-3-8b-a100-h100 --upgrades", "evaluate tiny-gpt-cpu --upgrades",
        "sweep tiny-gpt-cpu --over tp=1 --sensitivity", "sweep tiny-gpt-cpu --over tp=1,2 --weak",
        "sweep tiny-gpt-cpu --over cluster.devices=2,4 --over training.global_batch=8 --weak",
        "sweep tiny-gpt-cpu --over tp=1,2 --page no/such/folder.html",
        "sweep tiny-gpt-cpu --over tp=1,2 --page /proc/page.html",
        "compare tiny-gpt-cpu --with plan=auto --page no/such/folder.html"}) {
    CAPTURE(command);
    const auto refused = run(words_of(command), scratch);
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "; "));
  }
}

TEST_CASE("--all has the next best plans of each family of the ranking, in every format") {
  const Scratch scratch;
  const std::string command =
      "plan tiny-gpt-cpu --set plan={} --top 3 --all --quiet --reproducible";
  const auto report = run(words_of(command), scratch);
  CHECK(report.status == 0);
  for (const char* number : {"\n    1  ", "\n  1.2  ", "\n  1.3  ", "\n    2  ", "\n  2.2  "})
    CHECK(contains(report.out, number));
  const auto json = nlohmann::json::parse(run(words_of(command + " --format json"), scratch).out);
  const auto rows = golden::lines_of(run(words_of(command + " --format csv"), scratch).out);
  const std::string page = run(words_of(command + " --format html"), scratch).out;
  std::size_t members = 0;
  for (const auto& plan : json["plans"]) {
    members += plan["members"].size();
    for (const auto& member : plan["members"]) {
      for (const char* key : {"tp", "pp", "dp", "cp", "ep"})
        CHECK(member["plan"][key] == plan["plan"][key]);
      CHECK(member["plan"] != plan["plan"]);
    }
  }
  CHECK(members >= 4);
  CHECK(std::ranges::count_if(rows, [](const std::string& row) {
          return row.ends_with(",member");
        }) == static_cast<std::ptrdiff_t>(members));
  CHECK(contains(page, ">1.2<"));
}

TEST_CASE("where a simpler plan is chosen every format has what the fastest would take") {
  const Scratch scratch;
  scratch.write("m.yaml",
                "model: mixtral-8x7b\ncluster: {base: dgx-h100, devices: 64}\n"
                "training: {global_batch: 256, sequence: 4096, stack: megatron-core-2026}\n");
  const auto asked = [&](const std::string& words) {
    return run(words_of("plan m.yaml --strategy grid --quiet --reproducible " + words), scratch)
        .out;
  };
  const std::string sentence = "would take vpp 4 -> 8: ";
  CHECK(contains(asked(""), sentence));
  CHECK(contains(asked("--format md"), "would take vpp 4 -"));
  CHECK(contains(asked("--format html"), "would take vpp 4 -&gt; 8: "));
  const auto json = nlohmann::json::parse(asked("--format json"));
  const auto &chosen = json["plans"][0], &fastest = json["fastest"];
  CHECK(fastest["changes"] == nlohmann::json{"vpp 4 -> 8"});
  CHECK(fastest["plan"]["vpp"] == 8);
  CHECK(chosen["plan"]["vpp"] == 4);
  CHECK(fastest["faster_pct"] > 0);
  CHECK(fastest["faster_pct"] <= 1);
  CHECK(fastest["iteration_s"] < chosen["time"]["iteration_s"]);
  CHECK(fastest["iteration_s"] == json["certificate"]["lower_bound_s"]);
  CHECK(contains(asked("--format csv"), ",fastest\n"));
  const auto strict = nlohmann::json::parse(asked("--format json --set search.simpler_within=0"));
  CHECK(strict["fastest"].is_null());
  CHECK(strict["plans"][0]["plan"] == fastest["plan"]);
}

TEST_CASE("--page is tried before anything is evaluated") {
  const Scratch scratch;
  const auto refused =
      run(words_of("sweep tiny-gpt-cpu --over tpp=1 --page no/such/folder.html"), scratch);
  CHECK(contains(refused.err, "folder.html"));
  CHECK_FALSE(contains(refused.err, "tpp"));
}

TEST_CASE("a batch that does not divide is told at its point") {
  const Scratch scratch;
  const auto swept = run(words_of("sweep tiny-gpt-cpu --over cluster.devices=4,2,3 --weak "
                                  "--set plan=auto --set training.global_batch=2 --format csv"),
                         scratch);
  CHECK(swept.status == 0);
  CHECK(contains(swept.out, "the batch would be 1.5 sequences on 3 devices"));
}

}  // namespace plan_extras_test
