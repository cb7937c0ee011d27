#include "planner/commands/listing.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include <algorithm>
#include <set>

#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace listing_test {

using fixtures::config_error;
using fixtures::contains;
using planner::listing;

namespace {

std::set<std::string> names(const std::string& kind, const std::vector<std::string>& words) {
  std::set<std::string> all;
  for (const auto& row : listing(kind, words, fixtures::configs()).table.rows)
    all.insert(row.front());
  return all;
}

}  // namespace

TEST_CASE("words choose the rows that hold them all, in any column and case") {
  const auto all = names("models", {}), llama = names("models", {"LLAMA"});
  CHECK(llama.size() < all.size());
  for (const auto& name : llama) CHECK(all.contains(name));
  CHECK(llama.contains("llama-3-8b"));
  CHECK_FALSE(llama.contains("gpt2"));
  CHECK(names("models", {"llama", "70b"}) ==
        std::set<std::string>{"llama-2-70b", "llama-3-70b", "llama-3.1-70b", "llama-3.3-70b"});
  CHECK(names("clusters", {"h800"}) == std::set<std::string>{"hgx-h800"});
}

TEST_CASE("keys are those of all files, engines' too") {
  CHECK(names("keys", {"plan.recompute"}).contains("plan.recompute"));
  CHECK(names("keys", {"host_step_s"}) == std::set<std::string>{"engine.host_step_s"});
}

TEST_CASE("where no row is left the nearest is named") {
  CHECK(contains(config_error([] { names("models", {"lamma-3-8b"}); }),
                 "list models has nothing with 'lamma-3-8b'; did you mean 'llama-3-8b'?"));
  CHECK(contains(config_error([] { names("keys", {"mbs"}); }), "did you mean 'plan.micro_batch'?"));
  CHECK(contains(config_error([] { names("modls", {}); }), "did you mean 'models'?"));
}

namespace {

constexpr const char* trained =
    "model: {base: mixtral-8x7b}\n"
    "cluster: {base: dgx-h100, devices: 8, device: {base: h100-sxm5-80gb}}\n"
    "training: {global_batch: 64, sequence: 4096, stack: {base: megatron-core-2026}}\n"
    "plan: {base: auto}\n";
constexpr const char* served =
    "workload: inference\n"
    "model: {base: llama-3-8b}\n"
    "cluster: {base: dgx-h100, devices: 8, device: {base: h100-sxm5-80gb}}\n"
    "serving: {stack: {base: vllm-0.6}, concurrency: 64, input_tokens: 1024, output_tokens: 128}\n";

// Where a listed key is written in a scenario, its last letter twice: as --set has it.
std::string misspelt(const std::string& listed) {
  const std::size_t dot = listed.find('.');
  const std::string of = listed.substr(0, dot);
  const char* const top = of == "device"   ? "cluster.device"
                          : of == "stack"  ? "training.stack"
                          : of == "engine" ? "serving.stack"
                                           : of.c_str();
  std::string key = top + listed.substr(dot) + listed.back(), end = "=1";
  if (const std::size_t list = key.rfind("[]."); list != std::string::npos) {
    std::string item = key.substr(list + 3) + ": 1";  // of a map within it, as a map
    if (const auto map = item.find('.'); map != std::string::npos)
      item = item.substr(0, map) + ": {" + item.substr(map + 1) + "}";
    end = "=[{" + item + "}]";
    key.erase(list);
  }
  for (std::size_t list; (list = key.find("[]")) != std::string::npos;) key.replace(list, 2, ".0");
  return key + end;
}

// What is wrong with a scenario with one more key.
std::string refusal(const char* scenario, const std::string& assignment) {
  costmodel::Value root = costmodel::parse_yaml(scenario, "s.yaml");
  const auto set = [&](const std::string& text) {
    costmodel::assign_path(root, text, {"--set", 0, 0});
  };
  // Without which these maps are none.
  if (assignment.starts_with("training.fine_tuning.")) set("training.fine_tuning.method=lora");
  if (assignment.starts_with("plan.disaggregation."))
    set("plan.disaggregation={prefill: {tp: 1}, decode: {tp: 1}}");
  return config_error([&] {
    set(assignment);
    if (scenario == served)
      costmodel::read_serving(root, "s", fixtures::configs());
    else
      costmodel::read_scenario(root, "s", fixtures::configs());
  });
}

}  // namespace

TEST_CASE("no listed key may be misspelt, over a base or in a scenario") {
  const auto starts = [](const std::string& key, const std::vector<std::string>& beginnings) {
    return std::ranges::any_of(beginnings, [&](const auto& word) { return key.starts_with(word); });
  };
  for (const std::string& key : names("keys", {})) {
    CAPTURE(key);
    const std::string assignment = misspelt(key);
    CAPTURE(assignment);
    const std::string wrong = key.substr(key.find_last_of(".]") + 1) + key.back();
    const bool serves = starts(key, {"serving.", "engine.", "plan.disaggregation."});
    if (!serves) CHECK(contains(refusal(trained, assignment), "has no key '" + wrong + "'"));
    if (serves || starts(key, {"model.", "cluster.", "device."}))
      CHECK(contains(refusal(served, assignment), "has no key '" + wrong + "'"));
  }
}

TEST_CASE("a configuration that cannot be read is left out with a warning") {
  const program::Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "models");
  std::filesystem::create_symlink("gone", scratch.path() / "models/gone.yaml");
  scratch.write("models/wrong.yaml", "kind: gpt\nlayers: many\n");
  scratch.write("models/right.yaml", "base: gpt2\n");
  auto path = fixtures::configs();
  path.directories.insert(path.directories.begin(), scratch.path());
  const auto found = planner::listing("models", {}, path);
  const auto rows = [&](const char* name) {
    return std::ranges::count(found.table.rows, name, [](const auto& row) { return row.front(); });
  };
  CHECK(rows("right") == 1);
  CHECK(rows("gpt2") == 1);
  CHECK(rows("gone") == 0);
  REQUIRE(found.warnings.size() == 2);
  CHECK(contains(found.warnings[0], "models/wrong.yaml:"));
  CHECK(contains(found.warnings[1], "models/gone.yaml' leads to no file"));
}

}  // namespace listing_test
