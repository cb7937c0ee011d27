// The planner against plans that were run: small ones of our own, and published ones.
#include "planner/accuracy/published_plans.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/accuracy/json_accuracy.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/accuracy/published_plans_report.hpp"
#include "planner/search/grid_search.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace published_plans_test {

namespace expert_plans_test {

using namespace planner;

namespace {

const costmodel::ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};

std::string evidence(const std::string& source) {
  return SHARDPLAN_SOURCE_DIR "/configs/evidence/" + source + ".yaml";
}

constexpr const char* mine =
    "source: {title: mine}\n"
    "defaults:\n"
    "  model: {kind: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200}\n"
    "  cluster: {base: selene, devices: 8}\n"
    "  training: {global_batch: 32, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
    "  measured: {iteration_s: 1}\n"
    "runs:\n"
    "- {id: poor, plan: {tp: 8, recompute: full}}\n"
    "- {id: open, plan: {tp: auto, micro_batch: auto}}\n"
    "- {id: larger, training: {global_batch: 64}, plan: {pp: 8}}\n"
    "- {id: bad, plan: {tp: 3}}\n"
    "- {id: full, plan: {micro_batch: 32}, measured: {fits: false}}\n"
    "- {id: long, training: {sequence: 4096, stack: megatron-core-2025}, plan: {cp: 4}}\n";

ExpertComparison compared(const std::vector<std::string>& files, ComparisonRequest request = {}) {
  return compare_with_experts(read_evidence_runs(files), path, request);
}

const ExpertRun& run_named(const ExpertComparison& c, const std::string& id) {
  for (const auto& run : c.runs) {
    if (run.id == id) return run;
  }
  FAIL("no run " << id);
  return c.runs.front();
}

}  // namespace

TEST_CASE(
    "runs of one workload share a search; what did not run is left out, what is bad is told") {
  const program::Scratch scratch;
  scratch.write("mine.yaml", mine);
  const auto c = compared({scratch.path().string()});
  CHECK(c.runs.size() == 5);
  CHECK(c.workloads.size() == 3);
  const ExpertRun &poor = run_named(c, "poor"), &open = run_named(c, "open");
  CHECK(poor.workload == open.workload);
  CHECK(poor.workload != run_named(c, "larger").workload);
  CHECK(run_named(c, "bad").error.find("tp 3") != std::string::npos);
  CHECK_FALSE(c.gain_pct(run_named(c, "bad")));
  const ExpertWorkload& w = c.workloads[poor.workload];
  REQUIRE(w.even);
  CHECK_FALSE(w.any);
  CHECK(*c.gain_pct(poor) > 10);
  CHECK(*c.gain_pct(poor) ==
        doctest::Approx(100 * (1 - w.even->iteration.value / poor.own->iteration.value)));
  CHECK(*c.gain_pct(open) >= 0);
  const ComparisonFigures f = figures_of(c);
  CHECK(f.runs == 4);
  CHECK(f.as_fast == 4);
  CHECK(f.slower == 0);
  CHECK(f.largest_gain_pct >= *c.gain_pct(poor));
  CHECK(f.smallest_gain_pct <= f.median_gain_pct);
  CHECK(worst_loss_pct(c) == doctest::Approx(-f.smallest_gain_pct));
}

TEST_CASE("of a run's plan context parallelism stays, all else is what `plan` would find") {
  const program::Scratch scratch;
  scratch.write("mine.yaml", mine);
  const auto c = compared({scratch.path().string()});
  const auto& context = c.workloads[run_named(c, "long").workload];
  REQUIRE(context.even);
  CHECK(context.even->plan.cp == 4);
  scratch.write("free.yaml",
                "model: {kind: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 51200}\n"
                "cluster: {base: selene, devices: 8}\n"
                "training: {global_batch: 32, sequence: 1024, precision: fp16, stack: "
                "megatron-2021}\n");
  const auto s = costmodel::load_scenario((scratch.path() / "free.yaml").string(), path, {});
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  const auto found = search(s, evaluator);
  const auto& even = *c.workloads[run_named(c, "poor").workload].even;
  CHECK(even.plan == found.plans.front().plan);
  CHECK(even.iteration == found.plans.front().iteration);
}

TEST_CASE("the answer is the same for any number of threads, and progress counts to the end") {
  const program::Scratch scratch;
  scratch.write("mine.yaml", mine);
  const std::vector<std::string> files{scratch.path().string()};
  std::size_t calls = 0, last = 0, all = 0;
  const auto count = [&](std::size_t done, std::size_t of) {
    ++calls;
    CHECK(done == last + 1);
    last = done;
    all = of;
  };
  const std::string one = expert_json(compared(files, {true, 1, {}}));
  CHECK(expert_json(compared(files, {true, 4, count})) == one);
  CHECK(calls == all);
  CHECK(last == all);
  CHECK(all == 3 + 5);  // workloads, runs
}

TEST_CASE("a slower best is named, and so is finding nothing") {
  const program::Scratch scratch;
  scratch.write("mine.yaml", mine);
  auto c = compared({scratch.path().string()});
  for (auto& run : c.runs) {
    if (run.id == "poor") run.own->iteration = c.workloads[run.workload].even->iteration / 1.25;
  }
  REQUIRE(slower_runs(c).size() == 1);
  CHECK(slower_runs(c).front()->id == "poor");
  CHECK(worst_loss_pct(c) == doctest::Approx(25));
  c.workloads[run_named(c, "long").workload].even.reset();
  c.workloads[run_named(c, "long").workload].error = "no plan fits in memory";
  REQUIRE(slower_runs(c).size() == 2);
  CHECK(slower_runs(c).front()->id == "long");
  CHECK(worst_loss_pct(c) > 1e9);
  const ComparisonFigures f = figures_of(c, "mine");
  CHECK(f.slower == 2);
  CHECK(f.as_fast == 2);
  const std::string text = expert_report(c, false, {});
  CHECK(text.find("  poor") != std::string::npos);
  CHECK(text.find("no plan fits in memory") != std::string::npos);
  CHECK(text.find("tp 3") != std::string::npos);
  const auto json = nlohmann::json::parse(expert_json(c))["summary"];
  CHECK(json["slower_runs"] == nlohmann::json{"long", "poor"});
  CHECK(json["by_source"]["mine"]["slower"] == 2);
}

TEST_CASE("the program compares, limits and prints in four formats") {
  const program::Scratch scratch;
  scratch.write("mine.yaml", mine);
  const std::string command = "validate mine.yaml --against-planner ";
  const auto text = program::run(program::words_of(command + "--threads 2"), scratch);
  CHECK(text.status == 0);
  CHECK(text.err.empty());  // progress is for terminals
  for (const auto& line : golden::lines_of(text.out.substr(0, text.out.find("Not compared"))))
    CHECK(display_width(line) <= 100);
  const auto limited = program::run(program::words_of(command + "--fail-above 0.05"), scratch);
  CHECK(limited.status == 0);
  const auto pages = program::run(program::words_of(command + "--format md --rows"), scratch);
  CHECK(pages.out.find("| planner, even stages |") != std::string::npos);
  const auto rows = program::run(program::words_of(command + "--format csv"), scratch);
  CHECK(golden::lines_of(rows.out).size() == 1 + 5);
  const auto refused = program::run(program::words_of(command + "--format svg"), scratch);
  CHECK(refused.status == 2);
  CHECK(refused.err.find("allowed: text, json, csv, md") != std::string::npos);
}

TEST_CASE("no published plan is predicted faster than the planner's best") {
  std::vector<std::string> sources{"korthikanti-2022", "vtrain-multi"};
  if (!sanitized)
    sources.insert(sources.end(),
                   {"bigscience-a100", "megatron-sc21", "nemo-2022-a100", "zero-bubble"});
  std::vector<std::string> files;
  for (const auto& source : sources) files.push_back(evidence(source));
  const auto c = compared(files, {false, 2, {}});
  for (const auto& source : sources) {
    const ComparisonFigures f = figures_of(c, source);
    CAPTURE(source);
    CHECK(f.runs > 5);
    CHECK(f.as_fast == f.runs);
  }
  CHECK(worst_loss_pct(c) <= equal_pct);
}

}  // namespace expert_plans_test

}  // namespace published_plans_test
