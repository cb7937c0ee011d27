#include "runtime/engine/engine.hpp"

#include <doctest/doctest.h>

#include <string>

namespace engine_test {

using costmodel::Schedule;
using costmodel::ScheduleKind;

namespace {

// Writes down what it is told to do; every action takes one second.
class Recorder : public runtime::StageBackend {
 public:
  void forward(int stage, int m) override { note('F', stage, m); }
  void backward(int stage, int m) override { note('B', stage, m); }
  void weight_gradient(int stage, int m) override { note('W', stage, m); }
  void send_forward(int stage, int m) override { note('s', stage, m); }
  void recv_forward(int stage, int m) override { note('r', stage, m); }
  void send_backward(int stage, int m) override { note('S', stage, m); }
  void recv_backward(int stage, int m) override { note('R', stage, m); }
  costmodel::Seconds now() const override { return costmodel::Seconds(done_); }
  std::string said;

 private:
  void note(char letter, int stage, int m) {
    said += std::to_string(stage) + letter + std::to_string(m) + " ";
    done_ += 1;
  }
  double done_ = 0;
};

}  // namespace

TEST_CASE("the engine does one rank's actions in their order and times each") {
  const Schedule lowered =
      costmodel::lower(costmodel::generate(ScheduleKind::one_f_one_b, 2, 1, 2));
  Recorder first, last;
  const auto events = runtime::execute(lowered, 0, first);
  CHECK(first.said == "0F0 0s0 0F1 0s1 1R0 0B0 1R1 0B1 ");
  runtime::execute(lowered, 1, last);
  CHECK(last.said == "0r0 1F0 1B0 1S0 0r1 1F1 1B1 1S1 ");
  REQUIRE(events.size() == 8);
  CHECK(events[0].name == "0F0");
  CHECK(events[0].stream == costmodel::Stream::compute);
  CHECK(events[1].stream == costmodel::Stream::pipeline_transfer);
  CHECK(events[5].start.value == 5);
  CHECK(events[5].end.value == 6);
}

}  // namespace engine_test
