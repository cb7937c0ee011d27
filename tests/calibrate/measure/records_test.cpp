// Calibrations that were ended go on where they were.
#include "calibrate/measure/records.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "calibrate/commands/cpu_command.hpp"
#include "costmodel/base/error.hpp"
#include "tests/run_program.hpp"

namespace records_test {

using calibrate::PartFile;
using calibrate::Record;
using calibrate::Task;
using costmodel::Pass;
using costmodel::Seconds;

namespace {

Record record(const std::string& task) {
  return {task,
          "linear",
          Pass::weight_gradient,
          {64, 128, 256},
          2.0 * 64 * 128 * 256,
          {Seconds(1.25e-5), Seconds(1.5e-5), 7, 0.0125}};
}

std::string part_in(const program::Scratch& scratch) {
  return (scratch.path() / "out.part").string();
}

}  // namespace

TEST_CASE("a record is a line, and a line a record") {
  const Record before = record("product 64 x 128 x 256");
  const Record after = calibrate::read_line(to_line(before));
  CHECK(after.task == before.task);
  CHECK(after.op == before.op);
  CHECK(after.pass == before.pass);
  CHECK(after.point == before.point);
  CHECK(after.amount == before.amount);
  CHECK(after.time.least == before.time.least);
  CHECK(after.time.median == before.time.median);
  CHECK(after.time.repeats == 7);
  for (const char* line : {"", "one\ttwo", "t\tlinear\tsideways\t1\t1\t1\t1\t1\t1",
                           "t\tlinear\tforward\t1\tmany\t1\t1\t1\t1"})
    CHECK_THROWS_AS(calibrate::read_line(line), costmodel::ConfigError);
}

TEST_CASE("what was measured is taken up, of the same command only") {
  const program::Scratch scratch;
  PartFile first(part_in(scratch), "cpu; 2 cores");
  first.add({record("a")});
  first.add({record("b"), record("b")});
  PartFile second(part_in(scratch), "cpu; 2 cores");
  CHECK(second.taken_up() == 3);
  CHECK(second.has("b"));
  CHECK(!second.has("c"));
  CHECK(PartFile(part_in(scratch), "cpu; 4 cores").taken_up() == 0);
  second.remove();
  CHECK(PartFile(part_in(scratch), "cpu; 2 cores").taken_up() == 0);
}

TEST_CASE("measurements are kept in a file, never in what a link names") {
  const program::Scratch scratch;
  scratch.write("victim", "old");
  PartFile part(part_in(scratch), "header");
  std::filesystem::create_symlink("victim", part_in(scratch));
  CHECK_THROWS_AS(part.add({record("a")}), costmodel::ConfigError);
  CHECK_THROWS_AS(PartFile(part_in(scratch), "header"), costmodel::ConfigError);
  CHECK(scratch.read("victim") == "old");
}

TEST_CASE("tasks share the time by what they say, those that are done left out") {
  const program::Scratch scratch;
  PartFile part(part_in(scratch), "header");
  part.add({record("done")});
  double now = 0;
  std::vector<double> given;
  const auto task = [&](const std::string& name, double share, double takes) {
    return Task{name, share,
                [&, name, takes](const calibrate::StopRule& rule) {
                  given.push_back(rule.longest.value);
                  now += takes;
                  return std::vector{record(name)};
                },
                false};
  };
  std::vector<std::string> shown;
  run_tasks(
      {task("done", 5, 1), task("a", 1, 4), task("b", 2, 3), task("c", 1, 90)}, Seconds(20), part,
      [&] { return Seconds(now); },
      [&](std::size_t, const std::string& name, double) { shown.push_back(name); });
  CHECK(shown == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(given.size() == 3);
  CHECK(given[0] == doctest::Approx(5));             // 20 s · 1 of 4
  CHECK(given[1] == doctest::Approx(16.0 * 2 / 3));  // what the first left
  CHECK(given[2] == doctest::Approx(13));
  CHECK(part.records().size() == 4);
  Task again = task("a, round 2", 1, 1);
  again.repeated = true;
  run_tasks({again}, Seconds(0), part, [&] { return Seconds(now); }, {});
  CHECK(part.records().size() == 4);
}

TEST_CASE("a calibration that took longer than asked says so") {
  CHECK(calibrate::longer_than_asked(Seconds(60), Seconds(64)) == "");
  CHECK(calibrate::longer_than_asked(Seconds(60), Seconds(106)) ==
        "; 60 s were asked for, but every point is measured once, however long");
}

}  // namespace records_test
