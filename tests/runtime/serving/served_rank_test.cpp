// A rank that serves; that plans agree is in run/serve_command_test.
#include "runtime/serving/served_rank.hpp"

#include <doctest/doctest.h>

#include <array>

#include "runtime/devices/cpu_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "tests/runtime/support/served_runs.hpp"

namespace served_rank_test {

using namespace runtime;

namespace {

ServedJob job(const char* plan) {
  const auto r = served_runs::request(served_runs::llama, plan);
  return served_job(r.root, r.scenario, 1, 0);
}

}  // namespace

TEST_CASE("prompts depend on the seed, and are tokens") {
  const auto prompts = drawn_prompts(1, 3, 50, 300);
  CHECK(prompts.size() == 150);
  CHECK(prompts != drawn_prompts(2, 3, 50, 300));
  for (const std::int64_t id : prompts) CHECK((id >= 0 && id < 300));
}

TEST_CASE("a batch after another answers the same and holds the same, also after it was timed") {
  const ServedJob its = job("{tp: 2, pp: 2, dp: 1}");
  std::array<ServedMeasurement, 4> first, second;
  std::array<PassPace, 4> alone, prompts;
  std::array<int, 4> calls{};  // by rank
  run_ranks(4, {}, [&](Transport& transport) {
    CpuDevice device;
    ServedRank rank(its, transport, device);
    const auto me = static_cast<std::size_t>(transport.rank());
    first[me] = rank.serve();
    alone[me] = rank.timed(decode_pass(its), 2, [&] { ++calls.at(me); });
    prompts[me] = rank.timed(prefill_pass(its).value(), 1, [] {});
    second[me] = rank.serve();
  });
  for (std::size_t r = 0; r < 4; ++r) {
    CHECK(calls.at(r) == 2 * 2);  // each round has pp parts
    CHECK(first[r].tokens == second[r].tokens);
    CHECK(first[r].tokens.empty() == (r < 2));
    CHECK(first[r].traffic == second[r].traffic);
    CHECK(first[r].cache == second[r].cache);
    CHECK(first[r].activations == second[r].activations);
    CHECK(alone[r].operators.value > 0);
    CHECK(alone[r].collectives.value > 0);
    CHECK(alone[r].transfers.value > 0);
    CHECK(prompts[r].operators > alone[r].operators);
    CHECK(first[r].end > first[r].first_token);
  }
  CHECK(first[2].tokens == first[3].tokens);  // both tensor ranks choose alike
}

TEST_CASE("one rank sends nothing, and has no collectives to time") {
  const ServedJob its = job("{tp: 1, pp: 1, dp: 1}");
  run_ranks(1, {}, [&](Transport& transport) {
    CpuDevice device;
    ServedRank rank(its, transport, device);
    CHECK(rank.serve().traffic.total() == 0);
    const PassPace alone = rank.timed(decode_pass(its), 1, [] {});
    CHECK(alone.collectives.value == 0);
    CHECK(alone.transfers.value == 0);
    CHECK(rank.stage().layers == 4);
  });
}

}  // namespace served_rank_test
