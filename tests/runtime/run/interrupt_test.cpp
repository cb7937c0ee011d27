// A run that is interrupted ends at once and reports what it has.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/run_program.hpp"

namespace interrupt_test {

using nlohmann::json;
using program::Run;
using program::Scratch;

namespace {

const std::string endless =
    "run tiny-gpt-cpu --set training.sequence=16 --set training.global_batch=4 "
    "--set plan.micro_batch=1 --iterations 1000000 --progress ";

// Sends the signal when the third iteration has ended.
Run interrupted(const Scratch& scratch, const std::string& command, int signal) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const pid_t child = program::start(program::words_of(command), scratch);
  while (scratch.read(".stderr").find("iteration 3 of ") == std::string::npos &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, signal);
  return program::finish(child, scratch);
}

}  // namespace

TEST_CASE("Ctrl-C ends a run, which reports the iterations that were whole") {
  const Scratch scratch;
  const Run run = interrupted(scratch, endless + "--format json", SIGINT);
  CHECK(run.status == 130);
  CHECK(run.err.find("shardplan run: interrupted by SIGINT\n") != std::string::npos);
  CHECK(run.err.find(" of 1000000 iterations were whole and are reported") != std::string::npos);
  const json all = json::parse(run.out);
  CHECK(all["interrupted"] == true);
  CHECK(all["cause"] == "interrupted by SIGINT");
  CHECK(all["iterations"] >= 3);
  CHECK(all["loss"].size() == all["iterations"]);
  CHECK(all["measured"]["communication"] == all["predicted"]["communication"]);
}

TEST_CASE("SIGTERM does the same, and a file is written whole") {
  const Scratch scratch;
  const Run run = interrupted(scratch, endless + "--out report.txt --trace trace.json", SIGTERM);
  CHECK(run.status == 143);
  CHECK(run.out == "");
  const std::string report = scratch.read("report.txt");
  CHECK(report.find("ended early: interrupted by SIGTERM\n") != std::string::npos);
  CHECK(report.find("checksum ") != std::string::npos);
  CHECK(json::parse(scratch.read("trace.json"))["traceEvents"].size() > 4);
}

TEST_CASE("what kills a run outright leaves the file with the iterations it had") {
  const Scratch scratch;
  const Run run = interrupted(scratch, endless + "--format json --out report.json", SIGKILL);
  CHECK(run.status == 137);
  const json all = json::parse(scratch.read("report.json"));
  CHECK(all["interrupted"] == true);
  CHECK(all["cause"] == "still running when this was written");
  CHECK(all["iterations"] >= 1);
  CHECK(all["loss"].size() == all["iterations"]);
}

TEST_CASE("a report that finds no place stops no run, and is told once") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "folder");
  const std::string command = endless + "--out folder/report.txt";
  const pid_t child = program::start(program::words_of(command), scratch);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto seen = [&](const std::string& words) {
    while (scratch.read(".stderr").find(words) == std::string::npos &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return std::chrono::steady_clock::now() < until;
  };
  CHECK(seen("iteration 3 of "));
  std::filesystem::remove_all(scratch.path() / "folder");
  CHECK(seen("(the run goes on)"));  // a report is due every second
  kill(child, SIGINT);
  const Run done = program::finish(child, scratch);
  CHECK(done.status == 130);
  const std::string fault = "folder/report.txt: cannot be written: No such file or directory; ";
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (auto at = done.err.find(words); at != std::string::npos; at = done.err.find(words, at + 1))
      ++found;
    return found;
  };
  CHECK(count("shardplan run: " + fault + "choose another place (the run goes on)\n") == 1);
  CHECK(count("shardplan run: what was seen cannot be reported: " + fault) == 1);
  CHECK(count("are reported") == 0);
}

}  // namespace interrupt_test
