// Records travel to rank 0 whole.
#include "runtime/serving/served_measurement.hpp"

#include <doctest/doctest.h>

#include "runtime/ranks/thread_transport.hpp"

namespace served_measurement_test {

using namespace runtime;

TEST_CASE("rank 0 has every rank's record, by rank, to the last digit") {
  const auto record = [](int rank) {
    ServedRecord r;
    for (int i = 0; i <= rank; ++i) {
      ServedMeasurement m;
      m.first_token.value = 0.1 + rank;
      m.end.value = 1.0 / (3 + i);
      m.tokens.assign(static_cast<std::size_t>(rank), (std::int64_t{1} << 40) + i);
      m.traffic.all_gather = 7;
      m.traffic.send = 9 + rank;
      m.weights = 11;
      m.cache = 13;
      m.activations = 17;
      m.pace = 1.5;
      r.batches.push_back(m);
    }
    r.decode.transfers.value = 0.25 * rank;
    r.prefill.operators.value = 0.125 * rank;
    return r;
  };
  std::vector<ServedRecord> all;
  run_ranks(3, {}, [&](Transport& transport) {
    const auto gathered = gather_records(transport, record(transport.rank()));
    CHECK(gathered.empty() == (transport.rank() != 0));
    if (transport.rank() == 0) all = gathered;
  });
  REQUIRE(all.size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    const ServedRecord &seen = all[static_cast<std::size_t>(rank)], expected = record(rank);
    REQUIRE(seen.batches.size() == expected.batches.size());
    CHECK(seen.decode.transfers == expected.decode.transfers);
    CHECK(seen.prefill.operators == expected.prefill.operators);
    for (std::size_t i = 0; i < seen.batches.size(); ++i) {
      const ServedMeasurement &a = seen.batches[i], &b = expected.batches[i];
      CHECK(a.first_token == b.first_token);
      CHECK(a.end == b.end);
      CHECK(a.tokens == b.tokens);
      CHECK(a.traffic == b.traffic);
      CHECK(a.weights + a.cache + a.activations == 11 + 13 + 17);
      CHECK(a.pace == b.pace);
    }
  }
}

}  // namespace served_measurement_test
