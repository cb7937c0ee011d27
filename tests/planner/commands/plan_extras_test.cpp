// The parts that flags add to the reports of plan and evaluate.
#include "planner/commands/plan_extras.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/costmodel/support/fixtures.hpp"
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
       {"plan tiny-gpt-cpu --sensitivity --format csv",
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
