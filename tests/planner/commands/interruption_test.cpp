// Long commands that a signal ends: they report what they have, which is a part of what they would
// have had. It takes seconds, because a search has to be under way and to have found something.
#include "planner/commands/interruption.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace interruption_test {

using fixtures::contains;
using nlohmann::json;
using program::Run;
using program::Scratch;

namespace {

// Half a minute of one processor, with plans after a second.
const std::string long_search =
    "plan gpt3-175b-selene --set plan={} --set model=deepseek-v3 --set cluster=dgx-h100 "
    "--set cluster.devices=256 --set training.stack=megatron-core-2026 "
    "--set training.sequence=4096 --strategy ";

Run interrupted_after(double seconds, const std::string& command, int signal,
                      const Scratch& scratch) {
  const pid_t child = program::start(program::words_of(command), scratch);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  kill(child, signal);
  return program::finish(child, scratch);
}

// Waits longer before the signal, until the command has something to report.
Run interrupted(const std::string& command, int signal, const std::string& expected,
                const Scratch& scratch) {
  Run run;
  for (double seconds = 0.5; seconds <= 32; seconds *= 2) {
    run = interrupted_after(seconds, command, signal, scratch);
    if (contains(run.err, expected) && !contains(run.err, "the first 0 points")) break;
  }
  return run;
}

const std::string so_far = " configurations looked at so far; nothing is proved";

}  // namespace

TEST_CASE("plan interrupted behind its search keeps the proof, and has a part of the rest") {
  const Scratch scratch;
  const Run run = interrupted(
      "plan gpt3-175b-selene --set model=llama-3.1-405b --set cluster=dgx-h100 "
      "--set cluster.devices=16384 --set training.global_batch=2048 --set training.sequence=8192 "
      "--set training.stack=megatron-core-2026 --set plan={} --strategy grid --sensitivity "
      "--format json --out best.json",
      SIGINT, "the search had ended", scratch);
  CHECK(run.status == 130);
  const json all = json::parse(scratch.read("best.json"));
  CHECK(all["interrupted"] == false);
  CHECK(all["certificate"]["gap_pct"] <= 1);
  CHECK(all["sensitivity"]["interrupted"] == true);
}

TEST_CASE("plan interrupted by Ctrl-C prints the best plans so far, without a certificate") {
  const Scratch scratch;
  const Run run =
      interrupted(long_search + "meshes --format json --out best.json", SIGINT, so_far, scratch);
  CHECK(run.status == 130);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("shardplan plan: interrupted by SIGINT: best of "));
  const json all = json::parse(scratch.read("best.json"));
  CHECK(all["best"] == 0);
  CHECK(all["plans"].size() >= 1);
  CHECK(all["plans"][0]["memory"]["fits"] == true);
  CHECK(all["certificate"].is_null());
  CHECK(all["interrupted"] == true);
  CHECK("shardplan plan: " + all["cause"].get<std::string>() + "\n" == run.err);
  CHECK_FALSE(contains(all["notes"].dump(), "proved is"));
}

TEST_CASE("plan interrupted by SIGTERM says in its report that nothing is proved") {
  const Scratch scratch;
  const Run run = interrupted(long_search + "alpa", SIGTERM, so_far, scratch);
  CHECK(run.status == 143);
  CHECK(contains(run.out, "\nPlan "));
  CHECK(contains(run.out, "  The search was interrupted by SIGTERM: best of "));
  CHECK_FALSE(contains(run.out, "Proved"));
  CHECK_FALSE(contains(run.out, "proved: "));
}

TEST_CASE("plan interrupted before it has a plan says so, in every format") {
  const Scratch scratch;
  // Bounds alone take seconds here.
  const std::string command =
      "plan gpt3-175b-selene --set plan={} --set cluster.devices=720720 --set model.layers=2520 "
      "--set training.global_batch=720720 --set training.stack=megatron-core-2026 --format ";
  const std::string expected = "interrupted by SIGINT before a plan was found";
  const Run text = interrupted(command + "text", SIGINT, expected, scratch);
  CHECK(text.status == 130);
  CHECK(contains(text.out, "\nNo plan was found: " + expected + ".\n"));
  CHECK(text.err == "shardplan plan: " + expected + "\n");
  const Run data = interrupted(command + "json", SIGINT, expected, scratch);
  CHECK(data.status == 130);
  const json all = json::parse(data.out);
  CHECK(all["best"].is_null());
  CHECK(all["certificate"].is_null());
  CHECK(all["interrupted"] == true);
  CHECK(all["reason"] == expected);
  const Run yaml = interrupted(command + "yaml --out best.yaml", SIGINT, expected, scratch);
  CHECK(yaml.status == 130);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "best.yaml"));
}

TEST_CASE("sweep interrupted prints the rows it has, each of them complete") {
  const Scratch scratch;
  std::string command =
      "sweep gpt3-175b-selene --format csv --over tp=1,2,4,8 --over "
      "training.global_batch=1536";
  for (int i = 2; i <= 5000; ++i) command += "," + std::to_string(1536 * i);
  const Run run =
      interrupted(command, SIGINT, "shardplan sweep: interrupted by SIGINT: the first ", scratch);
  CHECK(run.status == 130);
  const auto rows = std::count(run.out.begin(), run.out.end(), '\n') - 1;
  CHECK(contains(run.err, "the first " + std::to_string(rows) + " points are reported\n"));
  CHECK(rows > 0);
  CHECK(rows < 20'000);
}

TEST_CASE("a second signal ends the process at once") {
  const pid_t child = fork();
  if (child == 0) {
    const planner::Options options;
    const planner::Interruption interruption(options);
    if (interruption.came() || !interruption.text().empty()) _exit(1);
    kill(getpid(), SIGTERM);
    while (!interruption.came()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (interruption.text() != "interrupted by SIGTERM" || !interruption.poll()()) _exit(2);
    kill(getpid(), SIGINT);
    std::this_thread::sleep_for(std::chrono::seconds(30));
    _exit(3);
  }
  int state = 0;
  waitpid(child, &state, 0);
  REQUIRE(WIFEXITED(state));
  CHECK(WEXITSTATUS(state) == 130);
}

}  // namespace interruption_test
