// `shardplan calibrate --from-log` on logs of a known factor.
#include "planner/commands/from_log_command.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/planner/support/megatron_runs.hpp"
#include "tests/planner/support/own_logs.hpp"

namespace from_log_command_test {

using fixtures::contains;
using own_logs::from_logs;
using own_logs::job;
using own_logs::write_run;
using program::Scratch;

namespace {

std::string refused(const std::vector<std::string>& runs,
                    const std::vector<std::string>& more = {}) {
  return fixtures::config_error([&] { from_logs(runs, more); });
}

// The file that --out wrote, as a cluster of so many devices.
std::string on(const Scratch& scratch, const std::string& yaml) {
  std::string own = yaml;
  own.replace(own.find("dgx-h100"), 8, (scratch.path() / "mine.yaml").string());
  return own;
}

}  // namespace

TEST_CASE("a planted factor comes back within the interval, and evaluate takes it") {
  const Scratch scratch;
  const std::vector<std::string> runs{write_run(scratch, "a", job(1, 16), 1.15),
                                      write_run(scratch, "b", job(2, 32), 1.16),
                                      write_run(scratch, "c", job(4, 32), 1.14)};
  const auto result = from_logs(runs, {"--out", (scratch.path() / "mine.yaml").string()});
  CHECK(contains(result.text, "3 runs by megatron-core-2025"));
  CHECK_FALSE(contains(result.text, "wider"));
  const costmodel::Estimate before = own_logs::predicted(job(2, 64));
  const costmodel::Estimate after = own_logs::predicted(on(scratch, job(2, 64)));
  const double factor = after.iteration / before.iteration;
  CHECK(factor > 1.05);
  CHECK(factor < 1.15);
  CHECK(after.interval.low < 1.15 * before.iteration);
  CHECK(after.interval.high > 1.15 * before.iteration);
  CHECK(after.interval.high / after.interval.low <
        1.001 * before.interval.high / before.interval.low);
  CHECK(contains(*std::prev(after.notes.end(), 2),
                 "interval: by 3 runs of megatron-core-2025 on this cluster"));
  // Runs that are predicted by the file fit anew from the formulas' times, not upon the factor.
  const auto again = from_logs({write_run(scratch, "d", on(scratch, job(1, 16)), 1)});
  CHECK(contains(again.text, "time_factor: 1.0"));
}

TEST_CASE("another stack's times stay, and it is said") {
  const Scratch scratch;
  from_logs({write_run(scratch, "a", job(1, 16), 1.15)},
            {"--out", (scratch.path() / "mine.yaml").string()});
  const std::string other = job(1, 16, "", "megatron-core-2026");
  const costmodel::Estimate before = own_logs::predicted(other);
  const costmodel::Estimate after = own_logs::predicted(on(scratch, other));
  CHECK(after.iteration == before.iteration);
  CHECK(after.interval.high == before.interval.high);
  const bool said = std::ranges::any_of(after.notes, [](const std::string& note) {
    return contains(note, "measured is of megatron-core-2025, not of megatron-core-2026");
  });
  CHECK(said);
}

TEST_CASE("plan takes the factor too: the same plan, time and bound in proportion") {
  const auto best = [](const std::string& measured) {
    const Scratch scratch;
    scratch.write("tiny.yaml",
                  scenarios::tiny + "cluster: {base: laptop-cpu, devices: 4" + measured + "}\n");
    const auto json = nlohmann::json::parse(
        own_logs::perform({"plan", (scratch.path() / "tiny.yaml").string(), "--format", "json"})
            .text);
    return std::pair{json["plans"][0]["plan"], json["certificate"]["lower_bound_s"].get<double>()};
  };
  const auto [plan, bound] = best("");
  const auto [own_plan, own_bound] =
      best(", measured: {stack: shardplan-cpu, runs: 2, time_factor: 0.8, low: 0.9, high: 1.1}");
  CHECK(plan == own_plan);
  CHECK(own_bound == doctest::Approx(0.8 * bound).epsilon(1e-9));
}

TEST_CASE("a group among others has no measured factor") {
  CHECK(contains(fixtures::config_error([] {
                   scenarios::read(scenarios::tiny +
                                   scenarios::joined("{base: dgx-h100, devices: 8, measured: "
                                                     "{stack: s, runs: 1, time_factor: 1, low: 1, "
                                                     "high: 1}}"));
                 }),
                 "measured is not for a group among others"));
}

TEST_CASE("runs with nothing in common are not fitted") {
  const Scratch scratch;
  const auto result = from_logs(
      {write_run(scratch, "a", job(1, 16), 1.2), write_run(scratch, "b", job(2, 16), 0.85)});
  CHECK(contains(result.text, "No factor is fitted"));
  CHECK(contains(result.text, "time_factor: 1.0000"));
  CHECK(result.warnings.size() == 2);  // slower, and faster, than any usual one
}

TEST_CASE("one job for all logs; a log that is its own") {
  const Scratch scratch;
  const std::string pair = write_run(scratch, "a", job(1, 16), 1.1);
  const std::string log = pair.substr(pair.rfind(':') + 1);
  const std::string yaml = pair.substr(0, pair.rfind(':'));
  CHECK(from_logs({log}, {"--job", yaml}).text == from_logs({pair}).text);
  scratch.write("b:c.log", scratch.read("a.log"));
  const std::string odd = (scratch.path() / "b:c.log").string();
  CHECK(contains(from_logs({yaml + ":" + odd}).text, "b:c.log"));
  CHECK(contains(from_logs({odd}, {"--job", yaml}).text, "b:c.log"));
  CHECK(contains(refused({log}), "a.log: does not say what job it is of; write JOB:LOG"));
}

TEST_CASE("a log of Megatron-LM says its job itself, but for the cluster") {
  const Scratch scratch;
  scratch.write("m.log", megatron_runs::log + own_logs::log_of(4));
  const std::string log = (scratch.path() / "m.log").string();
  CHECK(contains(refused({log}), "m.log: does not say cluster.base"));
  const auto json =
      nlohmann::json::parse(from_logs({log}, {"--cluster", "dgx-h100", "--format", "json"}).text);
  CHECK(json["runs"][0]["iterations"] == 30);
  CHECK(json["runs"][0]["measured_s"] == doctest::Approx(4).epsilon(0.01));
  CHECK(json["time_factor"] != 1);
}

TEST_CASE("what is not a run of that job, or not a new one, is refused with its place") {
  const Scratch scratch;
  const std::string a = write_run(scratch, "a", job(1, 16), 1.1);
  const std::string b = write_run(scratch, "b", job(2, 16, "", "megatron-core-2026"), 1.1);
  const std::string c =
      write_run(scratch, "c", job(2, 16, ", straggler: {per_doubling: 0.01, source: me}"), 1.1);
  const std::string far = write_run(scratch, "far", job(1, 16), 8);
  const std::string at = scratch.path().string() + "/";
  CHECK(contains(refused({a, a}), "a.log: holds the same iterations as"));
  scratch.write("copy.log", scratch.read("a.log"));
  CHECK(contains(refused({a, at + "a.yaml:" + at + "copy.log"}), "copy.log: holds the same"));
  CHECK(contains(refused({a, b}), "fit one stack at a time"));
  CHECK(contains(refused({a, c}), "is on another cluster than"));
  CHECK(contains(refused({far}), "takes 8 times what its job is predicted"));
  scratch.write("empty.log", "");
  CHECK(contains(refused({at + "a.yaml:" + at + "empty.log"}), "nothing measured in this log"));
  scratch.write("short.log", own_logs::log_of(4, 2));
  CHECK(contains(refused({at + "a.yaml:" + at + "short.log"}), "after its warm-up"));
  std::string other = scratch.read("a.log");
  for (std::size_t p; (p = other.find("size:   128")) != std::string::npos;)
    other.replace(p, 11, "size:    64");
  scratch.write("other.log", other);
  CHECK(contains(refused({at + "a.yaml:" + at + "other.log"}),
                 "other.log: says training.global_batch 64, and its job 128"));
  CHECK(contains(refused({at + "a.yaml:" + at + "none.log"}), "none.log"));
  CHECK(contains(refused({at + "none.yaml:" + at + "a.log"}), "none.yaml"));
  CHECK(contains(refused({":" + at + "a.log"}), "lacks a file"));
  CHECK(contains(refused({a}, {"--out", "/no/such/folder/mine.yaml"}), "/no/such/folder"));
}

TEST_CASE("calibrate without logs is the other program's") {
  const char* const logs[] = {"shardplan", "calibrate", "--from-log=a.log"};
  const char* const files[] = {"shardplan", "calibrate", "--from", "a.yaml"};
  CHECK(planner::fits_from_logs(3, logs));
  CHECK_FALSE(planner::fits_from_logs(4, files));
  CHECK(planner::is_handed_over("calibrate"));
}

}  // namespace from_log_command_test
