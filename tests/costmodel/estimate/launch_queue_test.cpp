// The lead of the host over the device, by hand and one micro-batch after the other.
#include "costmodel/estimate/launch_queue.hpp"

#include <algorithm>

#include <doctest/doctest.h>

namespace launch_queue_test {

using namespace costmodel;

TEST_CASE("without waits the lead grows by what the device takes longer") {
  const QueueLead lead = queue_lead({{Seconds(0), Seconds(2)}, {Seconds(0), Seconds(3)}, 4});
  CHECK(lead.forward == Seconds(0));
  CHECK(lead.backward == Seconds(0));
  CHECK(lead.left == Seconds(20));
}

TEST_CASE("a first forward waits, and later ones as far as the lead is used up") {
  // The loss gains 4, backward waits for 1 of it: 3 are left for the 2 that a forward waits.
  const QueuedWork work{{Seconds(2), Seconds(1)}, {Seconds(1), Seconds(3)}, 3};
  const QueueLead lead = queue_lead(work);
  CHECK(lead.forward == Seconds(2 * 2 / 3.0));
  CHECK(lead.backward == Seconds(1));
  CHECK(lead.left == Seconds(3 + 2 * 1));
}

TEST_CASE("where the host is the slower one it loses all of its lead") {
  const QueuedWork work{{Seconds(5), Seconds(1)}, {Seconds(7), Seconds(2)}, 8};
  const QueueLead lead = queue_lead(work);
  CHECK(lead.forward == Seconds(0));
  CHECK(lead.backward == Seconds(3));
  CHECK(lead.left == Seconds(0));
}

TEST_CASE("a host that waits for the device in forward keeps what it gains afterwards") {
  const QueuedWork work{{Seconds(1), Seconds(9)}, {Seconds(4), Seconds(1)}, 2, Seconds(2)};
  const QueueLead lead = queue_lead(work);
  CHECK(lead.forward == Seconds(0));
  CHECK(lead.backward == Seconds(3));
  CHECK(lead.left == Seconds(0));
}

TEST_CASE("as many micro-batches one by one take as long as many at once") {
  for (const double waited : {0.0, 0.5, 2.0, 6.0}) {
    const QueuedWork one{{Seconds(waited), Seconds(1)}, {Seconds(1), Seconds(2)}, 1};
    QueuedWork many = one;
    many.micro_batches = 1000;
    const QueueLead lead = queue_lead(many);
    double ahead = 0, sum = 0;
    for (int i = 0; i < 1000; ++i) {
      const double hidden = std::min(waited, ahead);
      const double spared = std::min(1.0, ahead - hidden + 3);
      ahead += 3 - hidden - spared;
      sum += hidden + spared;
    }
    CHECK((lead.forward + lead.backward).value == doctest::Approx(sum / 1000));
    CHECK(lead.left.value == doctest::Approx(ahead));
  }
}

}  // namespace launch_queue_test
