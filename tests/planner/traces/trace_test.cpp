#include "planner/traces/trace.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace trace_test {

using planner::no_operator;
using planner::Trace;

namespace {

std::uint32_t add(Trace& trace, const char* name, std::int64_t begin, std::int64_t length,
                  std::uint32_t thread = 0) {
  trace.operators.push_back({trace.texts.of(name), 0, thread, no_operator, begin, length});
  return static_cast<std::uint32_t>(trace.operators.size() - 1);
}

}  // namespace

TEST_CASE("a text has one number, whatever comes after it") {
  planner::TextTable texts;
  const auto a = texts.of("a");
  for (int i = 0; i < 100; ++i) texts.of(std::to_string(i));
  CHECK(texts.of("a") == a);
  CHECK(texts.at(a) == "a");
  CHECK(texts.size() == 101);
}

TEST_CASE("an operator is within the innermost one of its thread that holds it") {
  Trace trace;
  const auto outer = add(trace, "outer", 0, 100), inner = add(trace, "inner", 10, 20),
             innermost = add(trace, "innermost", 10, 5), later = add(trace, "later", 40, 10),
             other = add(trace, "other thread", 12, 2, 1), after = add(trace, "after", 100, 5);
  nest(trace);
  CHECK(trace.operators[outer].outer == no_operator);
  CHECK(trace.operators[inner].outer == outer);
  CHECK(trace.operators[innermost].outer == inner);
  CHECK(trace.operators[later].outer == outer);
  CHECK(trace.operators[other].outer == no_operator);
  CHECK(trace.operators[after].outer == no_operator);
}

TEST_CASE("iterations are those of the profiler, else from step to step, else all is one") {
  Trace trace;
  trace.kernels.push_back({0, no_operator, 0, 5, 10, 0, 0});
  find_iterations(trace);
  REQUIRE(trace.iterations.size() == 1);
  CHECK(trace.iterations.front().end == 15);
  for (const std::int64_t at : {100, 200, 300}) add(trace, "Optimizer.step#AdamW.step", at, 10);
  find_iterations(trace);
  REQUIRE(trace.iterations.size() == 2);
  CHECK(trace.iterations.back().begin == 210);
  add(trace, "ProfilerStep#3", 0, 50);
  find_iterations(trace);
  CHECK(trace.iterations.size() == 1);
}

TEST_CASE("marks of iterations have a number or nothing after their name") {
  for (const auto& [name, marked] : {std::pair{"step_forward", false},
                                     {"stepping", false},
                                     {"step", true},
                                     {"step 12", true},
                                     {"iteration 3", true},
                                     {"train_step 0", true},
                                     {"ProfilerStep#7", true}}) {
    CAPTURE(std::string(name));
    Trace trace;
    trace.kernels.push_back({0, no_operator, 0, 5, 10, 0, 0});
    add(trace, name, 3, 50);
    find_iterations(trace);
    CHECK(trace.marked == marked);
    REQUIRE(trace.iterations.size() == 1);
    CHECK(trace.iterations.front().begin == (marked ? 3 : 5));
  }
}

}  // namespace trace_test
