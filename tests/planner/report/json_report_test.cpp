// The JSON that scripts read: every key of the contract, of the right type, and figures that agree
// with each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "costmodel/plan/plan_keys.hpp"
#include "tests/run_program.hpp"

namespace json_report_test {

namespace json_test {

using Json = nlohmann::ordered_json;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

// What is evaluated and does not fit ends with status 3.
Json answer(const std::string& command, const Scratch& scratch, int status = 0) {
  const auto done = run(words_of(command + " --format json"), scratch);
  const Json json = Json::parse(done.out);
  if (command.starts_with("evaluate") && !json["memory"]["fits"]) status = 3;
  CHECK(done.status == status);
  return json;
}

void check_close(double a, double b, double relative = 1e-9) {
  CAPTURE(a);
  CAPTURE(b);
  CHECK(std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)));
}

double sum_of(const Json& object) {
  double sum = 0;
  for (const auto& value : object) sum += value.get<double>();
  return sum;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

void check_numbers(const Json& object, const std::vector<std::string>& keys) {
  CHECK(keys_of(object) == keys);
  for (const auto& value : object) {
    CHECK(value.is_number());
    CHECK(value.get<double>() >= 0);
  }
}

void check_plan_keys(const Json& plan) {
  for (const costmodel::PlanKey& key : costmodel::plan_key_rows()) {
    CAPTURE(key.row.name);
    // An even plan of a dense model has all keys but these.
    if (key.row.name == "micro_batch_group") continue;  // where it is not the pipeline's size
    const bool of_others =
        !key.value || key.row.name == "stages" || key.row.name == "replicas" ||
        key.row.name == "in_flight_limit" || key.row.name == "dispatcher" ||
        key.row.name == "dispatcher_multiprocessors" || key.row.name == "expert_overlap" ||
        key.row.name == "delayed_weight_gradient" || key.row.name == "shared_expert_overlap";
    CHECK(plan.contains(key.row.name) != of_others);
  }
  for (const auto* key : {"tp", "pp", "dp", "cp", "ep", "etp", "vpp", "micro_batch", "zero",
                          "devices", "micro_batches"})
    CHECK(plan[key].is_number_integer());
  CHECK(plan["sequence_parallel"].is_boolean());
  for (const auto* key : {"schedule", "cp_comm", "offload", "rank_order"})
    CHECK(plan[key].is_string());
  const bool recompute = plan["recompute"].is_string() || plan["recompute"].is_object();
  CHECK(recompute);
  CHECK(plan["stage_layers"].is_array());
  CHECK(plan["devices"] == plan["tp"].get<int>() * plan["pp"].get<int>() * plan["dp"].get<int>() *
                               plan["cp"].get<int>());
}

void check_time(const Json& time, const Json& plan) {
  CHECK(keys_of(time) == std::vector<std::string>{"iteration_s", "interval_s", "forward_s",
                                                  "backward_s", "stages", "breakdown", "hidden"});
  check_numbers(time["hidden"],
                {"tp_comm_s", "cp_comm_s", "ep_comm_s", "pp_comm_s", "dp_comm_s", "offload_s"});
  for (const auto& hidden : time["hidden"]) CHECK(hidden >= 0);
  const double iteration = time["iteration_s"];
  CHECK(iteration > 0);
  REQUIRE(time["interval_s"].size() == 2);
  CHECK(time["interval_s"][0] <= iteration);
  CHECK(time["interval_s"][1] >= iteration);
  CHECK(time["stages"].size() == plan["pp"].get<std::size_t>());  // all chunks of a rank together
  double forward = 0, backward = 0;
  for (const auto& stage : time["stages"]) {
    check_numbers(stage, {"forward_s", "backward_s"});
    forward = std::max(forward, stage["forward_s"].get<double>());
    backward = std::max(backward, stage["backward_s"].get<double>());
  }
  CHECK(time["forward_s"] == forward);
  CHECK(time["backward_s"] == backward);
  check_numbers(time["breakdown"],
                {"compute_s", "recompute_s", "tp_comm_s", "cp_comm_s", "ep_comm_s", "pp_comm_s",
                 "dp_comm_s", "bubble_s", "imbalance_s", "optimizer_s", "other_s"});
  check_close(sum_of(time["breakdown"]), iteration);
}

void check_memory(const Json& memory, const Json& plan) {
  CHECK(keys_of(memory) == std::vector<std::string>{"peak_bytes", "capacity_bytes", "fits",
                                                    "host_bytes", "fits_probability",
                                                    "allocated_bytes", "reserved_bytes",
                                                    "allocator_retries", "peak_at", "stages"});
  REQUIRE(memory["stages"].size() == plan["pp"].get<std::size_t>());
  double peak = 0;
  for (const auto& stage : memory["stages"]) {
    check_numbers(stage,
                  {"weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes",
                   "buffers_bytes", "total_bytes", "in_flight_micro_batches"});
    const double total = stage["total_bytes"];
    check_close(sum_of(stage) - total - stage["in_flight_micro_batches"].get<double>(), total);
    peak = std::max(peak, total);
  }
  CHECK(memory["peak_bytes"] == peak);
  CHECK(memory["fits"] == (memory["peak_bytes"] <= memory["capacity_bytes"]));
  const double chance = memory["fits_probability"];
  CHECK(chance > 0);
  CHECK(chance < 1);
  // What tensors take, and what the allocator holds for them before it gives cached blocks back.
  CHECK(memory["allocated_bytes"] <= memory["reserved_bytes"]);
  if (memory["fits"])
    CHECK(
        memory["reserved_bytes"].get<double>() <=
        std::max(memory["capacity_bytes"].get<double>(), memory["allocated_bytes"].get<double>()));
  const Json& fullest = memory["stages"].at(memory["peak_at"]["stage"].get<std::size_t>());
  CHECK(fullest["total_bytes"] == peak);
  CHECK(memory["peak_at"]["tensor_bytes"] <= fullest["activations_bytes"]);
}

// B and s are the scenario's; a plan's own figures must follow from them.
void check_throughput(const Json& e, double global_batch, double sequence) {
  Json t = e["throughput"];
  const Json causal = t["causal"];
  t.erase("causal");
  check_numbers(t, {"tokens_per_s", "tokens_per_s_per_device", "model_flops_per_iteration",
                    "hardware_flops_per_iteration", "model_tflops_per_device", "mfu", "hfu"});
  const double iteration = e["time"]["iteration_s"], devices = e["plan"]["devices"];
  check_close(t["tokens_per_s"], global_batch * sequence / iteration);
  check_close(t["tokens_per_s_per_device"], t["tokens_per_s"].get<double>() / devices);
  check_close(t["model_tflops_per_device"],
              t["model_flops_per_iteration"].get<double>() / iteration / devices / 1e12);
  check_numbers(causal, {"model_flops_per_iteration", "model_tflops_per_device", "mfu"});
  for (const auto& [key, value] : causal.items()) CHECK(value.get<double>() < t[key].get<double>());
  check_close(causal["mfu"].get<double>() / t["mfu"].get<double>(),
              causal["model_flops_per_iteration"].get<double>() /
                  t["model_flops_per_iteration"].get<double>());
  CHECK(t["mfu"] <= 1);
  CHECK(t["hardware_flops_per_iteration"] >= t["causal"]["model_flops_per_iteration"]);
  CHECK(t["hfu"] <= 1);
  check_close(t["hfu"].get<double>() * t["model_flops_per_iteration"].get<double>(),
              t["mfu"].get<double>() * t["hardware_flops_per_iteration"].get<double>());
}

// The busiest device is one of a stage.
void check_communication(const Json& communication, const Json& plan) {
  CHECK(keys_of(communication) == std::vector<std::string>{"per_device", "stages"});
  REQUIRE(communication["stages"].size() == plan["pp"].get<std::size_t>());
  double most = 0;
  for (const Json& stage : communication["stages"]) {
    check_numbers(stage, {"all_reduce_bytes", "all_gather_bytes", "reduce_scatter_bytes",
                          "all_to_all_bytes", "send_bytes"});
    most = std::max(most, sum_of(stage));
  }
  CHECK(sum_of(communication["per_device"]) == most);
  const auto& stages = communication["stages"];
  CHECK(std::find(stages.begin(), stages.end(), communication["per_device"]) != stages.end());
}

void check_evaluation(const Json& e, double global_batch, double sequence) {
  std::vector<std::string> keys{"scenario",        "plan",       "plan_text", "time",
                                "bubble_fraction", "throughput", "memory",    "communication",
                                "parameters",      "notes"};
  if (e["plan"]["devices"] > 512) {
    keys.emplace_back("goodput");
    CHECK(e["goodput"]["fraction"] > 0);
    CHECK(e["goodput"]["fraction"] < 1);
  }
  if (e.contains("unknown")) {
    keys.emplace_back("unknown");
    CHECK(e["unknown"].size() > 0);
  }
  // What would make it fit; plans of a search fit.
  auto own = keys_of(e);
  for (const char* of_all : {"format_version", "program"}) std::erase(own, of_all);
  const bool changes = std::erase(own, "remedies") > 0;
  CHECK((std::erase(own, "fitting_changes") > 0) == changes);
  if (changes) CHECK(e["memory"]["fits"] == false);
  CHECK(own == keys);
  CHECK(e["scenario"].is_string());
  check_plan_keys(e["plan"]);
  check_close(e["plan"]["micro_batches"].get<double>() * e["plan"]["dp"].get<double>() *
                  e["plan"]["micro_batch"].get<double>(),
              global_batch);
  check_time(e["time"], e["plan"]);
  CHECK(e["bubble_fraction"] >= 0);
  check_throughput(e, global_batch, sequence);
  check_memory(e["memory"], e["plan"]);
  check_communication(e["communication"], e["plan"]);
  CHECK(e["parameters"] > 0);
  for (const auto& note : e["notes"]) CHECK(note.is_string());
}

const std::string llama =
    "model: llama-3-8b\n"
    "cluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 8192, precision: bf16, stack: megatron-core-2025}\n";

}  // namespace

TEST_CASE("an evaluated plan has every key, and its figures agree") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string plan : {"{}",
                                 "{tp:8}",
                                 "{tp:2,sequence_parallel:true}",
                                 "{pp:4}",
                                 "{pp:4,vpp:2}",
                                 "{pp:4,schedule:gpipe}",
                                 "{pp:4,schedule:serial}",
                                 "{pp:4,schedule:ideal}",
                                 "{tp:16}",
                                 "{tp:2,pp:2,zero:1}",
                                 "{zero:2}",
                                 "{zero:3}",
                                 "{pp:2,recompute:full}",
                                 "{pp:2,recompute:selective}",
                                 "{recompute:{granularity:full,layers:3}}",
                                 "{pp:2,stage_layers:[20,12]}",
                                 "{pp:2,stage_layers:[32,0]}",
                                 "{tp:2,pp:2,rank_order:pp-dp-ep-cp-tp}",
                                 "{micro_batch:4}",
                                 "{pp:16}",
                                 "{tp:2,cp:4,cp_comm:a2a}",
                                 "{pp:2,cp:2,cp_comm:all_gather,zero:3}",
                                 "{tp:2,pp:8}"}) {
    CAPTURE(plan);
    const Json e =
        answer("evaluate llama.yaml --set plan=" + program::replaced(plan, ":", ":\t"), scratch);
    check_evaluation(e, 64, 8192);
  }
  check_evaluation(answer("evaluate tiny-gpt-cpu", scratch), 16, 128);
  check_evaluation(answer("evaluate gpt3-175b-selene --set plan.tp=8 --set plan.pp=12", scratch),
                   1536, 2048);
  check_evaluation(
      answer("evaluate llama.yaml --set training.sequence=1 --set cluster.devices=1", scratch), 64,
      1);
  check_evaluation(
      answer("evaluate llama.yaml --set training.precision=fp8 --set training.optimizer=sgd",
             scratch),
      64, 8192);
}

TEST_CASE("even stages without communication: the bubble is (p - 1) / m") {
  const Scratch scratch;
  const Json e = answer("evaluate gpt3-175b-selene --set plan.tp=8 --set plan.pp=16", scratch);
  const double p = e["plan"]["pp"], m = e["plan"]["micro_batches"];
  CHECK(e["bubble_fraction"].get<double>() ==
        doctest::Approx((p - 1) / m).epsilon(0.15));  // the ends are longer
}

TEST_CASE("a search prints its plans best first, all of them in memory, and a certificate") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string scenario : {"llama.yaml", "llama.yaml --set search.recompute=full",
                                     "gpt3-175b-selene --top 3", "tiny-gpt-cpu --set plan={}"}) {
    CAPTURE(scenario);
    const Json found = answer("plan " + scenario, scratch);
    for (const auto* key : {"scenario", "searched", "best", "certificate", "plans"})
      CHECK(found.contains(key));
    for (const auto* key : {"configurations", "feasible", "pruned", "seconds"})
      CHECK(found["searched"][key].is_number());
    CHECK(found["best"] == 0);
    const double bound = found["certificate"]["lower_bound_s"];
    REQUIRE_FALSE(found["plans"].empty());
    double before = 0;
    for (const auto& e : found["plans"]) {
      CHECK(e["time"]["iteration_s"] >= before);
      before = e["time"]["iteration_s"];
      CHECK(e["time"]["iteration_s"].get<double>() >= bound * (1 - 1e-9));
      CHECK(e["memory"]["fits"] == true);
      check_plan_keys(e["plan"]);
      check_time(e["time"], e["plan"]);
      check_memory(e["memory"], e["plan"]);
    }
    const double best = found["plans"][0]["time"]["iteration_s"];
    CHECK(found["certificate"]["gap_pct"].get<double>() ==
          doctest::Approx(100 * (best / bound - 1)));
  }
}

TEST_CASE("a front is told where it is asked for: less memory and more time row by row") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  CHECK_FALSE(answer("plan llama.yaml", scratch).contains("front"));
  const Json found = answer("plan llama.yaml --front --strategy layouts", scratch);
  const Json& front = found["front"];
  REQUIRE(front.size() >= 3);
  CHECK(front[0]["plan"] == found["strategies"]["grid"]["plan"]);
  const double capacity = found["plans"][0]["memory"]["capacity_bytes"];
  for (std::size_t i = 0; i < front.size(); ++i) {
    CHECK(keys_of(front[i]) ==
          std::vector<std::string>{"iteration_s", "peak_bytes", "headroom_bytes", "plan"});
    check_plan_keys(front[i]["plan"]);
    check_close(front[i]["peak_bytes"].get<double>() + front[i]["headroom_bytes"].get<double>(),
                capacity);
    if (i == 0) continue;
    // The plan itself may be the simplest of some that are faster, with less memory too.
    const double preferred = i == 1 ? 0.99 : 1;
    CHECK(front[i]["iteration_s"].get<double>() >
          preferred * front[i - 1]["iteration_s"].get<double>());
    CHECK(front[i]["headroom_bytes"] > front[i - 1]["headroom_bytes"]);
  }
  const auto refused = run(words_of("plan llama-3-8b-a100-h100 --front --format json"), scratch);
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--front is of stages that are alike") != std::string::npos);
}

TEST_CASE("stages of any layout are told beside even ones, with the bound for both") {
  const Scratch scratch;
  const Json found = answer(
      "plan gpt3-175b-selene --strategy both --set plan.tp=8 "
      "--set plan.pp=16 --set plan.micro_batch=1 --set plan.vpp=1",
      scratch);
  const Json& told = found["strategies"];
  CHECK(keys_of(told) ==
        std::vector<std::string>{"grid", "alpa", "meshes", "searched", "notes", "sharding"});
  const double grid = told["grid"]["iteration_s"], alpa = told["alpa"]["iteration_s"];
  CHECK(alpa <= grid);
  CHECK(found["plans"][0]["time"]["iteration_s"] == alpa);
  CHECK(found["plans"][0]["plan"] == told["alpa"]["plan"]);
  CHECK(found["certificate"]["lower_bound_s"].get<double>() <= alpa);
  CHECK_FALSE(told["searched"]["time_ran_out"].get<bool>());
  CHECK(told["notes"].size() >= 3);
  const Json& sharding = told["sharding"];
  CHECK(sharding["mesh"] == Json{12, 8});
  CHECK(sharding["time_s"].get<double>() <= sharding["plans_own"]["time_s"].get<double>());
  CHECK(sharding["lower_bound_s"] == sharding["time_s"]);
  CHECK(sharding["memory_bytes"].get<double>() <= sharding["memory_limit_bytes"].get<double>());
  REQUIRE(sharding["layers"].size() > 0);
  for (const Json& layers : sharding["layers"]) {
    CHECK(layers["schemes"].size() > 0);
    CHECK(layers["operators"].size() > 0);
  }
}

TEST_CASE("when nothing fits, JSON says so in the same shape") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const Json failed =
      answer("plan llama.yaml --set model=llama-3.1-405b --set cluster.devices=8", scratch, 3);
  CHECK(failed["best"].is_null());
  CHECK(failed["plans"].empty());
  CHECK(failed["searched"]["feasible"] == 0);
  CHECK(failed["searched"]["configurations"] > 0);
  CHECK(failed["obstacles"].size() > 0);
  CHECK(failed["remedies"].size() > 0);
}

TEST_CASE("the same question gets the same bytes") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command : {"evaluate llama.yaml --set plan.tp=2", "explain llama.yaml",
                                    "simulate tiny-gpt-cpu", "sweep llama.yaml --over tp=1,2,4"}) {
    const auto words = words_of(command + " --format json");
    CHECK(run(words, scratch).out == run(words, scratch).out);
  }
  const auto search = [&] {
    Json found = answer("plan llama.yaml", scratch);
    found["searched"].erase("seconds");
    return found.dump();
  };
  CHECK(search() == search());
}

TEST_CASE("a trace ends when the iteration does") {
  const Scratch scratch;
  for (const std::string command :
       {"tiny-gpt-cpu", "gpt3-175b-selene --set plan.tp=8 --set plan.pp=16"}) {
    const Json trace = answer("simulate " + command, scratch);
    const Json evaluated = answer("evaluate " + command, scratch);
    const double iteration = evaluated["time"]["iteration_s"];
    const Json& events = trace["traceEvents"];
    double end = 0;
    for (const auto& event : events) {
      if (event.value("ph", "") != "X") continue;
      CHECK(event["ts"].get<double>() >= 0);
      CHECK(event["dur"].get<double>() >= 0);
      end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
    }
    CHECK(end / 1e6 == doctest::Approx(iteration).epsilon(1e-6));
    CHECK(trace["iteration_s"] == iteration);
    CHECK(trace["bubble_fraction"] == evaluated["bubble_fraction"]);
  }
  const auto written = run(words_of("simulate tiny-gpt-cpu --trace trace.json"), scratch);
  CHECK(written.status == 0);
  // What is printed begins with the program's version.
  Json printed = Json::parse(run(words_of("simulate tiny-gpt-cpu --format json"), scratch).out);
  CHECK(printed.erase("format_version") + printed.erase("program") == 2);
  CHECK(Json::parse(scratch.read("trace.json")) == printed);
}

TEST_CASE("rows of a sweep are objects") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const Json rows =
      answer("sweep llama.yaml --over tp=2,3 --over training.precision=bf16,fp8", scratch);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["tp"] == 2);
  CHECK(rows[0]["training.precision"] == "bf16");
  CHECK(rows[0]["iteration_s"].is_number());
  CHECK(rows[0]["fits"].is_boolean());
  CHECK(rows[0]["error"].is_null());
  CHECK(rows[2]["iteration_s"].is_null());
  CHECK(rows[2]["error"].is_string());
  const double iteration =
      answer("evaluate llama.yaml --set plan.tp=2", scratch)["time"]["iteration_s"];
  CHECK(rows[0]["iteration_s"].get<double>() == doctest::Approx(iteration).epsilon(1e-5));
}

}  // namespace json_test

}  // namespace json_report_test
