// `shardplan run` as users see it: reports, traces, and what it refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/cpu/gemm_float.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace run_cli_test {

using fixtures::contains;
using nlohmann::json;
using program::Run;
using program::Scratch;

namespace {

const std::string tiny =
    "run tiny-gpt-cpu --set training.sequence=16 --set training.global_batch=8 "
    "--set plan.micro_batch=1 ";

Run run(const Scratch& scratch, const std::string& command) {
  return program::run(program::words_of(command), scratch);
}

json json_of(const Scratch& scratch, const std::string& command) {
  const Run done = run(scratch, command + " --format json");
  CAPTURE(command);
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  return json::parse(done.out);
}

// mine.yaml: a device that has bf16 alone, whereas CPUs compute in fp32.
void without_fp32(const Scratch& scratch) {
  std::filesystem::copy_file(SHARDPLAN_SOURCE_DIR "/configs/devices/cpu-generic.yaml",
                             scratch.path() / "mine.yaml");
  std::string text = scratch.read("mine.yaml");
  text.replace(text.find("fp32:"), 5, "bf16:");
  scratch.write("mine.yaml", text);
}

// What was measured, but for bytes, and what the machine is, as "#".
std::string without_times(const std::string& text) {
  constexpr std::size_t measured = 40;  // the column of measurements
  std::string masked;
  for (std::string line : golden::lines_of(text)) {
    const bool row =
        line.starts_with("stage ") || line.starts_with("iteration ") || line.starts_with("bubble ");
    if (row && !line.ends_with("exact")) line = line.substr(0, measured) + " #";
    if (contains(line, " cores: times are those of taking turns")) continue;
    if (line.starts_with("note: matrix products by ")) line = "note: matrix products by #";
    if (line.starts_with("loss ")) line = "loss #" + line.substr(line.find(" over "), 20) + " #";
    masked += line + "\n";
  }
  return masked;
}

}  // namespace

TEST_CASE("help is frozen, and names every flag there is") {
  const Scratch scratch;
  const Run help = run(scratch, "run --help");
  CHECK(help.status == 0);
  CHECK(golden::compare("help_run.txt", help.out) == "");
  for (const std::string& line : golden::lines_of(help.out)) {
    if (!line.starts_with("  --")) continue;
    const std::string flag = program::words_of(line).front();
    CAPTURE(flag);
    CHECK(!contains(run(scratch, "run " + flag + " 1").err, "unknown flag"));
  }
  CHECK(contains(run(scratch, "--help").out, "\n  run SCENARIO "));
}

TEST_CASE("the report of a run is frozen but for what it measured") {
  const Scratch scratch;
  const Run done = run(scratch, tiny + "--backend threads --iterations 2");
  CHECK(done.status == 0);
  CHECK(done.err == "");
  CHECK(golden::compare("report_run.txt", without_times(done.out)) == "");
  const Run emulated = run(scratch, tiny + "--backend emulated --virtual-clock");
  CHECK(emulated.status == 0);
  CHECK(golden::compare("report_run_emulated.txt", emulated.out) == "");
}

TEST_CASE("launches that this backend cannot replay are told, and not predicted as replayed") {
  const Scratch scratch;
  json plain = json_of(scratch, tiny + "--iterations 2");
  json asked = json_of(scratch, tiny + "--iterations 2 --set training.overlap.cuda_graph=true");
  for (json* run : {&plain, &asked})
    (*run)["predicted"]["time"].erase("interval_s");  // is of what was asked for
  CHECK(asked["predicted"]["time"] == plain["predicted"]["time"]);
  CHECK(std::ranges::count(asked["notes"],
                           "overlap.cuda_graph is left out: it replays launches of a GPU; use "
                           "--backend cuda") == 1);
}

TEST_CASE("the JSON of a run holds prediction and measurement in one shape") {
  const Scratch scratch;
  const json all = json_of(scratch, tiny + "--iterations 2");
  CHECK(all["backend"] == "threads");
  CHECK(all["plan"]["pp"] == 2);
  CHECK(all["iterations"] == 2);
  CHECK(all["loss"].size() == 2);
  CHECK(all["loss"][1] < all["loss"][0]);
  CHECK(all["interrupted"] == false);
  for (const char* side : {"measured", "predicted"}) {
    CAPTURE(side);
    CHECK(all[side]["time"]["iteration_s"] > 0);
    CHECK(all[side]["time"]["stages"].size() == 2);
    CHECK(all[side]["bubble_fraction"].is_number());
    CHECK(all[side]["memory"]["stages"].size() == 2);
    CHECK(all[side]["communication"].is_object());
    const json& throughput = all[side]["throughput"];
    const double iteration = all[side]["time"]["iteration_s"];
    CHECK(throughput["tokens_per_s"].get<double>() == doctest::Approx(8 * 16 / iteration));
    CHECK(throughput["tokens_per_s_per_device"].get<double>() ==
          doctest::Approx(8 * 16 / iteration / 4));
    CHECK(
        throughput["model_tflops_per_device"].get<double>() ==
        doctest::Approx(throughput["model_flops_per_iteration"].get<double>() / iteration / 4e12));
    CHECK(throughput["mfu"] > 0);
  }
  CHECK(all["measured"]["throughput"]["model_flops_per_iteration"] ==
        all["predicted"]["throughput"]["model_flops_per_iteration"]);
  CHECK(all["measured"]["communication"] == all["predicted"]["communication"]);
  const double predicted = all["predicted"]["time"]["iteration_s"],
               measured = all["measured"]["time"]["iteration_s"];
  CHECK(all["error_pct"]["iteration_s"].get<double>() ==
        doctest::Approx(100 * (predicted / measured - 1)));
  CHECK(all["error_pct"]["memory.1.weights_bytes"] == 0);
}

TEST_CASE("equal seeds give equal losses to the bit, and others do not") {
  const Scratch scratch;
  const auto loss = [&](const std::string& flags) {
    return json_of(scratch, tiny + "--iterations 3 " + flags)["loss_checksum"].get<std::string>();
  };
  const std::string first = loss("");
  CHECK(first.size() == 16);
  CHECK(loss("--seed 1") == first);
  CHECK(loss("--seed 2") != first);
}

TEST_CASE("a trace is JSON, has events of all pipeline ranks, and is read back") {
  const Scratch scratch;
  for (const std::string plan : {"--set plan.pp=4 --set plan.dp=1", ""}) {
    const std::string flags =
        plan + (plan.empty() ? "--backend emulated --virtual-clock" : " --iterations 2");
    CAPTURE(flags);
    CHECK(run(scratch, tiny + flags + " --trace trace.json --out report.txt").out == "");
    CHECK(contains(scratch.read("report.txt"), "predicted"));
    std::set<int> ranks;
    const json trace = json::parse(scratch.read("trace.json"));
    for (const json& event : trace["traceEvents"])
      if (event["ph"] == "X") ranks.insert(event["pid"].get<int>());
    CHECK(ranks.size() == (plan.empty() ? 2 : 4));
    const Run explained =
        run(scratch, "explain-job" + tiny.substr(3) + plan + " trace.json --quiet");
    CHECK(contains(explained.out, fmt::format("{} ranks' actions", ranks.size())));
    CHECK(explained.status == 0);
  }
}

TEST_CASE("on a virtual clock every schedule takes the predicted time to the bit") {
  const Scratch scratch;
  const std::string four =
      "run tiny-gpt-cpu --backend emulated --set model={\"base\":\"gpt-tiny\",\"layers\":8} "
      "--set training.stack=shardplan-cpu "
      "--set plan.pp=4 --set plan.dp=1 --set plan.micro_batch=1 --virtual-clock --set "
      "plan.schedule=";
  for (const std::string schedule :
       {"serial", "gpipe", "1f1b", "interleaved --set plan.vpp=2",
        "zero-bubble-h1 --set training.stack=zero-bubble-fork",
        "zero-bubble-v --set plan.vpp=2 --set training.stack=zero-bubble-fork"}) {
    CAPTURE(schedule);
    const json all = json_of(scratch, four + schedule);
    CHECK(all["measured"]["time"]["iteration_s"] == all["predicted"]["time"]["iteration_s"]);
    CHECK(all["error_pct"]["iteration_s"] == 0);
    CHECK(all["loss"].empty());
    CHECK(all["measured"]["memory"].is_null());
  }
}

TEST_CASE("in real time the emulated pipeline is no faster than predicted, and says what it adds") {
  const Scratch scratch;
  const json all = json_of(scratch, tiny + "--backend emulated");
  const double predicted = all["predicted"]["time"]["iteration_s"],
               measured = all["measured"]["time"]["iteration_s"];
  CHECK(measured >= predicted);
  CHECK(measured < predicted + 60);  // not the patience
  CHECK(contains(all["notes"].dump(), "longer here than it should"));
}

TEST_CASE("what cannot be run is refused with place, reason and remedy") {
  const Scratch scratch;
  struct Refusal {
    std::string command, reason, remedy;
  };
  const std::vector<Refusal> refusals{
      {"run tiny-gpt-cpu --set plan.tp=auto", "plan.tp is auto", "shardplan evaluate"},
      {"run tiny-gpt-cpu --set model=mixtral-8x7b", "no experts", "take a gpt or llama model"},
      {"run tiny-gpt-cpu --set plan.dp=3", "3", ""},
      {"run tiny-gpt-cpu --backend tpu", "--backend tpu is not known",
       "threads, mpi, tcp, emulated, cuda"},
      {"run tiny-gpt-cpu --backend thread", "--backend thread is not known",
       "did you mean 'threads'"},
      {"run tiny-gpt-cpu --iterations 0", "--iterations 0", "one at least"},
      {"run tiny-gpt-cpu --iterations none", "none", "see shardplan run --help"},
      {"run tiny-gpt-cpu --memory-limit much", "--memory-limit 'much'", "such as 512 MiB"},
      {"run tiny-gpt-cpu --memory-limit -1GiB", "--memory-limit", "such as 512 MiB"},
      {"run tiny-gpt-cpu --patience 0", "--patience 0 is not positive", "above zero"},
      {"run tiny-gpt-cpu --format yaml", "does not print the format 'yaml'", "text json"},
      {"run tiny-gpt-cpu --backend threads --tf32", "--tf32 means nothing to --backend threads",
       "write --backend cuda"},
      {"run tiny-gpt-cpu --backend threads --virtual-devices 2",
       "--virtual-devices means nothing to --backend threads", "write --backend cuda"},
      {"run tiny-gpt-cpu --backend cuda --virtual-devices 0", "--virtual-devices 0",
       "one at least"},
      {"run tiny-gpt-cpu --backend cuda --virtual-clock", "--virtual-clock means nothing",
       "write --backend emulated"},
      {"run tiny-gpt-cpu --iteration 2", "unknown flag '--iteration'", "--iterations"},
      {"run tiny-gpt-cpu --set model=t5-3b", "run executes no encoder-decoder models",
       "take a gpt or llama model"},
      {"run tiny-gpt-cpu --set model=t5-3b --backend emulated",
       "run executes no encoder-decoder models", "`shardplan simulate` this one"},
      {"run serve-small-llama-cpu --backend cuda", "--backend cuda does not serve",
       "write --backend threads"},
      {"run serve-small-llama-cpu --backend emulated", "--backend emulated does not serve",
       "write --backend threads"},
      {"run serve-small-llama-cpu --calibrated x.yaml", "--calibrated means nothing", "leave it"},
      {"run serve-small-llama-cpu --trace t.json", "--trace means nothing", "leave it out"},
      {"run serve-small-llama-cpu --tf32", "--tf32 means nothing to --backend threads",
       "write --backend cuda"},
      {"run serve-small-llama-cpu --set plan=auto", "plan is left open", "settle it first"},
      {"run serve-llama-7b-pcie-2 --set model=deepseek-v2-lite", "latent attention",
       "take a gpt or llama model"},
      {"run", "'run' takes SCENARIO, nothing is given", "shardplan run configs/scenarios/"},
      {"run no-such-scenario", "no-such-scenario", ""},
      {"--quiet run tiny-gpt-cpu", "flags stand before 'run'", "write shardplan run first"},
  };
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.command);
    const Run done = run(scratch, refusal.command);
    CAPTURE(done.err);
    CHECK(done.status == 2);
    CHECK(done.out == "");
    CHECK(contains(done.err, refusal.reason));
    CHECK(contains(done.err, refusal.remedy));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  }
}

TEST_CASE("a plan that needs more memory than the machine has is not begun") {
  const Scratch scratch;
  for (const std::string backend : {"threads", "mpi"}) {
    CAPTURE(backend);
    const Run done = run(scratch, "run gpt3-175b-selene --set plan.pp=1 --set plan.tp=1 " +
                                      std::string("--set cluster.devices=1 --backend ") + backend);
    CHECK(done.status == 4);
    CHECK(done.out == "");
    CHECK(contains(done.err, "1 rank of this plan holds 3.185 TiB"));
    CHECK(contains(done.err, ", and this machine has"));
    CHECK(contains(done.err, "or --backend emulated"));
  }
}

TEST_CASE("a file that cannot be run names its place") {
  const Scratch scratch;
  scratch.write("mine.yaml",
                "model: gpt-tiny\ncluster: {base: laptop-cpu, devices: 4}\n"
                "training: {global_batch: 16, sequence: 128, precision: fp32}\n"
                "plan: {tp: 1, pp: auto}\n");
  const Run done = run(scratch, "run mine.yaml");
  CHECK(done.status == 2);
  CHECK(done.err.starts_with("mine.yaml:4:"));
}

TEST_CASE("a run out of memory ends with 4 and says where, how much, and the limit") {
  const Scratch scratch;
  const Run done = run(scratch, tiny + "--memory-limit 1MiB");
  CHECK(done.status == 4);
  CHECK(done.out == "");
  CHECK(contains(done.err, ", pipeline rank "));
  CHECK(contains(done.err, "making its weights and states: out of memory: "));
  CHECK(contains(done.err, " of 1048576 bytes in use"));
}

TEST_CASE("where a process may have little memory, a run ends with a status and by no signal") {
  // Shadows of sanitizers take more; how another library's products end is its own matter.
  if (sanitized || std::string(runtime::cpu::float_provider) != "oneDNN") return;
  const Scratch scratch;
  for (int mebibytes = 90; mebibytes <= 150; mebibytes += 15) {
    const std::string limited =
        fmt::format("ulimit -v {}; cd {}; exec '{}' run tiny-gpt-cpu > out 2> err",
                    mebibytes * 1024, scratch.path().string(), SHARDPLAN_EXECUTABLE);
    const int ended = std::system(limited.c_str());
    CAPTURE(mebibytes);
    CAPTURE(scratch.read("err"));
    CHECK(WIFEXITED(ended));
    CHECK(WEXITSTATUS(ended) < 128);
  }
}

TEST_CASE("an mpi run without mpirun says how to start it") {
  const Scratch scratch;
  const Run done = run(scratch, tiny + "--backend mpi");
  CHECK(done.status == 4);
  CHECK(done.out == "");
  const bool without = contains(done.err, "this build has no MPI");
  CHECK(
      (without || contains(done.err, " has 4 ranks, and 1 was started: start it by mpirun -np 4")));
}

TEST_CASE("a cuda run says in a sentence what it misses; where it misses nothing, it computes") {
  const Scratch scratch;
  const Run done = run(scratch, tiny + "--backend cuda --iterations 2");
  if (done.status == 0) {
    CHECK(contains(done.out, "matrix products by cuBLASLt"));
    return;
  }
  CHECK(done.status == 4);
  CHECK(done.out == "");
  CHECK(done.err.starts_with("shardplan run: "));
  CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  CHECK((contains(done.err, "no CUDA driver") || contains(done.err, "no CUDA device") ||
         contains(done.err, "the CUDA driver serves CUDA") ||
         contains(done.err, "the CUDA part of this program is not there") ||
         contains(done.err, "install CUDA's libraries, or name their folder")));
}

TEST_CASE("a program without its CUDA part, or with a broken one, says that") {
  const Scratch scratch;
  const auto folder = std::filesystem::path(SHARDPLAN_EXECUTABLE).parent_path();
  std::filesystem::copy(folder / "shardplan-run", scratch.path() / "shardplan-run");
  const std::string command = "cd " + scratch.path().string() +
                              " && ./shardplan-run tiny-gpt-cpu --backend cuda --config-path " +
                              SHARDPLAN_SOURCE_DIR "/configs > out 2> err";
  const auto fault = [&] {
    const int status = std::system(command.c_str());  // NOLINT
    CHECK(WEXITSTATUS(status) == 4);
    CHECK(scratch.read("out") == "");
    return scratch.read("err");
  };
  CHECK(contains(fault(), "the CUDA part of this program is not there: libshardplan-cuda.so"));
  scratch.write("libshardplan-cuda.so", "no library\n");
  CHECK(contains(fault(), "the CUDA part of this program cannot be loaded: "));
}

TEST_CASE("emulated on a virtual clock the bubble is the predicted one, for every schedule") {
  const Scratch scratch;
  scratch.write("split.yaml",
                "model: llama-3-8b\n"
                "cluster: {base: dgx-h100, devices: 16}\n"
                "training: {global_batch: 32, sequence: 2048, stack: zero-bubble-fork}\n"
                "plan: {pp: 8, zero: 1}\n");
  for (const std::string schedule : {"1f1b", "gpipe", "zero-bubble-h1", "zero-bubble-h2"}) {
    CAPTURE(schedule);
    const json all = json_of(scratch,
                             "run split.yaml --backend emulated --virtual-clock --set "
                             "plan.schedule=" +
                                 schedule);
    const double predicted = all["predicted"]["bubble_fraction"];
    CHECK(std::abs(all["measured"]["bubble_fraction"].get<double>() - predicted) <= 1e-9);
    if (schedule == "1f1b") CHECK(predicted > 0.1);
  }
}

TEST_CASE("--fail-above turns a wrong prediction into status 4") {
  const Scratch scratch;
  CHECK(run(scratch, tiny + "--backend emulated --virtual-clock --fail-above 0.001").status == 0);
  const Run done = run(scratch, tiny + "--iterations 2 --fail-above 0.0001");
  CHECK(done.status == 4);
  CHECK(contains(done.err, " wrong, above --fail-above 0.0001"));
}

TEST_CASE("a profile without the precision that is computed is refused, and says which it has") {
  const Scratch scratch;
  without_fp32(scratch);
  const Run done = run(scratch, tiny + "--calibrated mine.yaml");
  CHECK(done.status == 2);
  CHECK(done.out == "");
  CHECK(contains(done.err,
                 "has no fp32 rate; set training.precision to one of bf16, or leave "
                 "--calibrated out"));
}

TEST_CASE("a run that went well ends with 0 where nothing is predicted, unless a limit is given") {
  const Scratch scratch;
  without_fp32(scratch);
  const std::string unpredicted =
      tiny +
      "--iterations 2 --set training.precision=bf16 "
      "--set cluster={\"base\":\"laptop-cpu\",\"devices\":4,\"device\":\"mine.yaml\"} ";
  const json all = json_of(scratch, unpredicted);
  CHECK(all["predicted"]["time"]["iteration_s"].is_null());
  CHECK(all["error_pct"]["iteration_s"].is_null());
  CHECK(all["measured"]["throughput"]["tokens_per_s"] > 0);
  CHECK(all["error_pct"]["memory.0.weights_bytes"] == 0);
  CHECK(contains(all["notes"].dump(), "the iteration time is not predicted: device "));
  const Run limited = run(scratch, unpredicted + "--fail-above 50");
  CHECK(limited.status == 4);
  CHECK(contains(limited.out, "has no fp32 rate"));
  CHECK_FALSE(contains(limited.out + limited.err, "nan"));
  CHECK_FALSE(contains(limited.out + limited.err, "inf"));
  CHECK(limited.err.ends_with(" has no fp32 rate, and so not within --fail-above 50\n"));
}

}  // namespace run_cli_test
