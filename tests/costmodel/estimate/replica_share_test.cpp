#include "costmodel/estimate/replica_share.hpp"

#include <doctest/doctest.h>

namespace replica_share_test {

TEST_CASE("a share has the sequences of all its replicas") {
  costmodel::ReplicaShare share;
  share.plan.dp = 3;
  share.plan.micro_batch = 2;
  share.micro_batches = 5;
  CHECK(share.sequences() == 30);
  costmodel::ReplicaShare other = share;
  CHECK(other == share);
  other.micro_batches = 6;
  CHECK_FALSE(other == share);
}

}  // namespace replica_share_test
