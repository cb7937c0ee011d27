// Schedules in files: what simulate writes, every command reads, and a bad one is refused with its
// place.
#include "planner/commands/simulate_command.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace simulate_command_test {

using program::run;
using program::words_of;

TEST_CASE("the example of docs/schedules.md: evaluated, simulated, explained, written") {
  const program::Scratch scratch;
  const auto json = run(words_of("evaluate tiny-gpt-schedule --format json"), scratch);
  REQUIRE(json.status == 0);
  const auto plan = nlohmann::json::parse(json.out);
  CHECK(plan["plan"]["schedule"]["file"].get<std::string>().ends_with("tiny-gpt-schedule.csv"));
  CHECK(plan["memory"]["stages"][0]["in_flight_micro_batches"] == 2);
  CHECK(run(words_of("explain tiny-gpt-schedule"), scratch).status == 0);
  CHECK(run(words_of("plan tiny-gpt-schedule"), scratch).status == 0);
  const auto written =
      run(words_of("simulate tiny-gpt-schedule --write-schedule own.csv"), scratch);
  CHECK(written.status == 0);
  CHECK(scratch.read("own.csv") ==
        "0F0,0B0,0F1,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
}

TEST_CASE("written and read again, a plan has the same timeline") {
  const program::Scratch scratch;
  const std::string stack = " --set training.stack=zero-bubble-fork --set training.precision=fp32";
  for (const std::string kind : {"v-half", "zero-bubble-v", "zero-bubble-h1", "1f1b"}) {
    for (const std::string file : {"own.csv", "own.txt"}) {
      CAPTURE(kind);
      const auto first = run(words_of("simulate tiny-gpt-cpu --format json" + stack +
                                      " --set plan.schedule=" + kind + " --write-schedule " + file),
                             scratch);
      REQUIRE(first.status == 0);
      const auto again = run(words_of("simulate tiny-gpt-cpu --format json" + stack +
                                      " --set plan.schedule.file=" + file),
                             scratch);
      CHECK(again.status == 0);
      CHECK(again.out == first.out);
    }
  }
}

TEST_CASE("a trace of more ranks than viewers show says which it has") {
  const program::Scratch scratch;
  const auto large =
      run(words_of("simulate gpt3-175b-selene --set "
                   "plan={tp:\t8,pp:\t96,micro_batch:\t1} --set training.global_batch=192 "
                   "--trace t.json"),
          scratch);
  CHECK(large.status == 0);
  CHECK(fixtures::contains(large.err, "trace written to t.json"));
  CHECK(fixtures::contains(large.err, "the trace shows pipeline ranks 0 to 63 of 96"));
  const auto trace = nlohmann::json::parse(scratch.read("t.json"));
  for (const auto& event : trace["traceEvents"]) CHECK(event["pid"] < 64);
  const auto small = run(words_of("simulate tiny-gpt-cpu --trace t.json"), scratch);
  CHECK_FALSE(fixtures::contains(small.err, "the trace shows"));
}

TEST_CASE("a bad schedule is refused with exit status 2, place and remedy") {
  const program::Scratch scratch;
  scratch.write("bad.csv", "0F0,0B0\n1B0,1F0\n");
  scratch.write("short.csv", "0F0,0B0\n1F0,1B0\n");
  const auto told = [&](const std::string& file) {
    const auto result =
        run(words_of("evaluate tiny-gpt-cpu --set plan.schedule.file=" + file), scratch);
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(told("bad.csv") ==
        "bad.csv:2:1: rank 1, cell 1 (1B0): backward stands before its forward; move it behind "
        "1F0\n");
  CHECK(fixtures::contains(told("short.csv"), "is a schedule of 1 micro-batches, the plan has 4"));
  CHECK(fixtures::contains(told("none.csv"), "none.csv: no such file"));
}

TEST_CASE(
    "DualPipeV and V-Min written and read again have the same timeline; DualPipe says why not") {
  const program::Scratch scratch;
  const std::string stack =
      " --set training.stack=hai-llm --set training.precision=fp32 --set plan.schedule=";
  for (const std::string file : {"own.csv", "own.txt"}) {
    const auto first = run(words_of("simulate tiny-gpt-cpu --format json" + stack +
                                    "dualpipe-v --write-schedule " + file),
                           scratch);
    REQUIRE(first.status == 0);
    const auto again =
        run(words_of("simulate tiny-gpt-cpu --format json --set training.stack=hai-llm --set "
                     "training.precision=fp32 --set plan.schedule.file=" +
                     file),
            scratch);
    CHECK(again.status == 0);
    CHECK(again.out == first.out);
  }
  const auto both =
      run(words_of("simulate tiny-gpt-cpu" + stack + "dualpipe --write-schedule own.csv"), scratch);
  CHECK(both.status == 2);
  CHECK(fixtures::contains(both.err, "a file has each stage on one rank"));
}

TEST_CASE("DeepSeek-V3 as published fits, within a tenth of the published 180,000 device hours") {
  const program::Scratch scratch;
  const auto result = run(words_of("evaluate deepseek-v3-h800 --format json"), scratch);
  REQUIRE(result.status == 0);
  const auto json = nlohmann::json::parse(result.out);
  const double iteration = json["time"]["iteration_s"];
  const double hours = 1e12 / (15360 * 4096) * iteration * 2048 / 3600;
  CHECK(hours > 162e3);
  CHECK(hours < 198e3);
  CHECK(result.err == "");  // no warning that it does not fit
}

}  // namespace simulate_command_test
