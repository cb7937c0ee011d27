// Pace: a yardstick between operators, and what it says of a thread that shares its core.
#include "runtime/devices/paced_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "costmodel/operators/op_list.hpp"
#include "runtime/backend/memory.hpp"

namespace paced_device_test {

using costmodel::Seconds;
using runtime::OpCall;

namespace {

// Operators that take so long of their thread's own time.
class Busy : public runtime::Device {
 public:
  explicit Busy(Seconds each) : each_(each) {}
  int calls = 0;
  runtime::Memory& memory() override { return runtime::host_memory(); }
  void forward(const OpCall& call) override { work(call); }
  void input_gradient(const OpCall& call) override { work(call); }
  void weight_gradient(const OpCall& call) override { work(call); }
  void logits_maximum(const OpCall& call) override { work(call); }
  void logits_exponentials(const OpCall& call) override { work(call); }
  void logits_loss(const OpCall& call) override { work(call); }

 private:
  void work(const OpCall& /*call*/) {
    ++calls;
    const Seconds end = runtime::thread_time() + each_;
    while (runtime::thread_time() < end) {
    }
  }
  Seconds each_;
};

const costmodel::Node node{
    costmodel::Site::other, costmodel::Linear{1, 1, 1, false, false}, {}, -1, {}};
const runtime::Place place;

}  // namespace

TEST_CASE("every call reaches the device, and the yardstick seldom stands between them") {
  Busy busy{Seconds(2e-4)};
  runtime::PacedDevice paced(busy);
  const OpCall call{.node = node, .place = place};
  const auto round = [&] {
    for (int i = 0; i < 50; ++i) {
      paced.forward(call);
      paced.input_gradient(call);
      paced.weight_gradient(call);
      paced.logits_maximum(call);
      paced.logits_exponentials(call);
      paced.logits_loss(call);
    }
  };
  const Seconds begin = runtime::thread_time();
  round();
  const double own = (runtime::thread_time() - begin).value;
  CHECK(paced.slowdown(Seconds(1e-6)) > 0);
  CHECK(busy.calls == 300);
  CHECK(paced.yardsticks() == 60);  // one in five, as long as it does not know how long they take
  // Then one in 15, of three milliseconds together; more where a call takes longer than it says, by
  // the thread's own clock.
  round();
  CHECK(busy.calls == 600);
  CHECK(paced.yardsticks() - 60 >= 20);
  CHECK(static_cast<double>(paced.yardsticks() - 60) <= 300 / std::max(1.0, 0.9 / own - 1));
  CHECK(paced.measuring() > Seconds(0));
}

TEST_CASE("the slowdown is the yardstick's over the reference") {
  Busy busy{Seconds(1e-4)};
  runtime::PacedDevice paced(busy);
  const OpCall call{.node = node, .place = place};
  const auto slowdown = [&](Seconds reference) {
    for (int i = 0; i < 100; ++i) paced.forward(call);
    return paced.slowdown(reference);
  };
  slowdown(Seconds(1));
  const Seconds before = runtime::Yardstick().at_best();
  const double took = slowdown(Seconds(1));  // the yardstick's seconds
  const Seconds best = min(before, runtime::Yardstick().at_best());
  // A core is never much faster than at its best; a busy machine is slower, by any factor.
  CHECK(took / best.value > 0.7);
  CHECK(paced.slowdown(best) == 1);  // nothing was done since
}

}  // namespace paced_device_test
