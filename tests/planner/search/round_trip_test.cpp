// What is printed can be read back, and means the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/planner/support/few_plans.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace round_trip_test {

using nlohmann::json;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

json answer(const std::string& command, const Scratch& scratch) {
  const auto done = run(words_of(command + " --format json"), scratch);
  CAPTURE(command);
  CAPTURE(done.err);
  const bool misfit = done.status == 3 && command.starts_with("evaluate");  // its figures are there
  REQUIRE((done.status == 0 || misfit));
  return json::parse(done.out);
}

}  // namespace

TEST_CASE("a found plan, written as YAML, is evaluated to the same time and memory") {
  const Scratch scratch;
  scratch.write("llama.yaml",
                "model: llama-3-8b\n"
                "cluster: {base: dgx-h100, devices: 16}\n"
                "training: {global_batch: 64, sequence: 8192}\n" +
                    few_plans::if_sanitized);
  scratch.write("moe.yaml",  // its stages have cp, its exchange and ep of their own
                "model: {base: mixtral-8x7b, layers: 8}\n"
                "cluster:\n"
                "  groups: [{name: h100, base: dgx-h100, devices: 8}, {name: a100, base: dgx-a100, "
                "devices: 8}]\n"
                "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n"
                "training: {global_batch: 16, sequence: 16384, stack: megatron-core-2025}\n");
  for (const std::string scenario :
       {"moe.yaml", "gpt3-175b-selene", "tiny-gpt-cpu --set plan={}", "llama.yaml",
        "llama.yaml --set plan.pp=4 --set model.layers=31",
        "llama.yaml --set plan={pp:\t2,stage_layers:\t[20,12]}",
        "llama.yaml --set training.overlap.async_tp=true",
        "llama.yaml --set plan.rank_order=tp-dp-cp-ep-pp --set search.max_tp=2",
        "llama.yaml --set search.memory_margin=0.4",
        "llama.yaml --set search.schedules=gpipe --set plan.pp=4 --set training.loss=flash",
        SHARDPLAN_SOURCE_DIR "/configs/scenarios/llama-3.2-1b-a100-h100.yaml"}) {
    if (sanitized && scenario.find("llama.yaml --set") == 0 &&
        scenario.find("plan={") == std::string::npos)
      continue;
    CAPTURE(scenario);
    const json best = answer("plan " + scenario, scratch)["plans"][0];
    const auto written =
        run(words_of("plan " + scenario + " --format yaml --out found.yaml"), scratch);
    REQUIRE(written.status == 0);
    json again = answer("evaluate found.yaml", scratch);
    CHECK(again["plan"] == best["plan"]);
    CHECK(again["time"] == best["time"]);
    CHECK(again["memory"] == best["memory"]);
    CHECK(again["communication"] == best["communication"]);
    const auto evaluated = run(words_of("evaluate found.yaml --format yaml"), scratch);
    CHECK(evaluated.out == scratch.read("found.yaml"));
  }
}

TEST_CASE("a scenario whose files lie elsewhere is written so that it still finds them") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "in");
  scratch.write("in/mine.yaml", "base: llama-3-8b\nlayers: 16\n");
  scratch.write("in/scenario.yaml",
                "model: mine.yaml\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: "
                "8, sequence: 4096}\n");
  const json best = answer("plan in/scenario.yaml", scratch)["plans"][0];
  REQUIRE(
      run(words_of("plan in/scenario.yaml --format yaml --out in/found.yaml"), scratch).status ==
      0);
  CHECK(answer("evaluate in/found.yaml", scratch)["time"] == best["time"]);
}

TEST_CASE("an imported model is the same as its config.json named directly") {
  const Scratch scratch;
  const std::string folder = SHARDPLAN_SOURCE_DIR "/tests/costmodel/support/hf/";
  for (const std::string name :
       {"gpt-neox-20b", "gpt2", "llama-3-8b", "mistral-7b", "qwen2-7b", "qwen3-8b"}) {
    CAPTURE(name);
    const std::string file = folder + name + ".json";
    REQUIRE(run({"import", "hf", file, "--out", "imported.yaml"}, scratch).status == 0);
    scratch.write("scenario.yaml",
                  "model: gpt2\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 8, "
                  "sequence: 1024}\n");
    json direct = answer("evaluate scenario.yaml --set model=" + file, scratch);
    json imported = answer("evaluate scenario.yaml --set model=imported.yaml", scratch);
    CHECK(imported["time"] == direct["time"]);
    CHECK(imported["memory"] == direct["memory"]);
    CHECK(imported["parameters"] == direct["parameters"]);
    CHECK(imported["throughput"] == direct["throughput"]);
    const auto again = run(words_of("import hf imported.yaml"), scratch);
    CHECK(again.status == 2);  // ours already, and it says so
  }
}

TEST_CASE("a key written over config.json has the effect that it has over our file of that model") {
  const Scratch scratch;
  const std::string folder = SHARDPLAN_SOURCE_DIR "/tests/costmodel/support/hf/";
  const std::string cluster = "cluster: {base: dgx-a100, devices: 8}\n";
  struct Pair {
    const char *model, *keys, *rest;
  };
  for (const Pair pair :
       {Pair{
            "llama-3-8b", "sliding_window: 256",
            "training: {global_batch: 64, sequence: 8192}\nplan: {tp: 8, sequence_parallel: true}"},
        Pair{"t5-3b", "decoder_heads: 8, decoder_ffn_hidden: 1024",
             "training: {global_batch: 64, sequence: 512}\nplan: {tp: 8}"},
        Pair{"mixtral-8x7b", "moe_latent_size: 1024",
             "training: {global_batch: 64, sequence: 4096}\nplan: {ep: 8}"}}) {
    const auto over = [&](const std::string& base, const std::string& keys) {
      scratch.write("s.yaml", "model: {base: " + base + keys + "}\n" + cluster + pair.rest + "\n");
      return answer("evaluate s.yaml --allow-path " + folder, scratch);
    };
    const std::string name = pair.model;
    CAPTURE(name);
    const std::string file = folder + name + ".json";
    const json plain = over(name, ""), ours = over(name, std::string(", ") + pair.keys);
    const json theirs = over(file, std::string(", ") + pair.keys);
    CHECK(over(file, "")["time"] == plain["time"]);
    CHECK(theirs["time"] == ours["time"]);
    CHECK(theirs["parameters"] == ours["parameters"]);
    CHECK(ours["time"] != plain["time"]);
  }
}

TEST_CASE("what no model has is refused over config.json as over our file, with its place") {
  const Scratch scratch;
  const std::string folder = SHARDPLAN_SOURCE_DIR "/tests/costmodel/support/hf/";
  const auto refusal = [&](const std::string& base, const std::string& keys,
                           const std::vector<std::string>& more) {
    scratch.write("s.yaml", "model: {" + keys + "base: " + base +
                                "}\ncluster: {base: dgx-a100, devices: 8}\ntraining: "
                                "{global_batch: 64, sequence: 1024}\n");
    std::vector<std::string> words{"evaluate", "s.yaml", "--allow-path", folder};
    words.insert(words.end(), more.begin(), more.end());
    const auto done = run(words, scratch);
    CHECK(done.status == 2);
    CHECK(done.out.empty());
    return done.err.substr(0, std::min(done.err.find(" known: "), done.err.find(" `")));
  };
  for (const std::string& base : {std::string("llama-3-8b"), folder + "llama-3-8b.json"}) {
    CAPTURE(base);
    const std::string model = "model 'llama-3-8b' has no key ";
    CHECK(refusal(base, "hiden: 8192, ", {}) ==
          "s.yaml:1:9: " + model + "'hiden'; did you mean 'hidden'?");
    CHECK(refusal(base, "frobnicate: 3, ", {}) == "s.yaml:1:9: " + model + "'frobnicate';");
    CHECK(refusal(base, "", {"--set", "model.layerz=3"}) ==
          "--set model.layerz=3: " + model + "'layerz'; did you mean 'layers'?");
  }
}

TEST_CASE("a file beside the scenario may be meant by a name that is a path") {
  const Scratch scratch;
  scratch.write("mine.yaml", "base: gpt2\nlayers: 24\n");
  scratch.write("s.yaml",
                "model: mine.yaml\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: "
                "8, sequence: 1024}\n");
  const auto layers = answer("evaluate s.yaml", scratch)["parameters"].get<double>();
  const auto overridden =
      answer("evaluate s.yaml --set model=gpt2 --set model.layers=24", scratch)["parameters"]
          .get<double>();
  CHECK(layers == overridden);
}

}  // namespace round_trip_test
