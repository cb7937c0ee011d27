// How ranks agree on the way their tensors go.
#include "runtime/ranks/tensor_route.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "runtime/backend/tags.hpp"
#include "tests/runtime/support/host_fabric.hpp"
#include "tests/runtime/support/trained.hpp"

namespace tensor_route_test {

using runtime::DevicePlace;
using runtime::FabricPlan;
using runtime::TensorWay;

namespace {

DevicePlace place_at(const std::string& host, const std::string& bus) { return {host, host, bus}; }

FabricPlan plan_of_four() {
  const costmodel::ParallelPlan plan{.tp = 2, .pp = 2};
  return {plan, runtime::lowered_schedule(plan, 4), false};
}

struct Seen {
  std::vector<std::string> notes = std::vector<std::string>(4);
  std::vector<runtime::FabricId> ids = std::vector<runtime::FabricId>(4);
  std::atomic<int> made = 0, named = 0;
};

// Four ranks at these places; rank 2 has no NCCL where `missing` says something.
void agree(Seen& seen, const std::vector<DevicePlace>& places, const std::string& missing = "") {
  const FabricPlan plan = plan_of_four();
  host_fabric::Meeting meeting(plan);
  runtime::run_ranks(4, {}, [&](runtime::Transport& host) {
    host_fabric::StreamedCpu device;
    const auto rank = static_cast<std::size_t>(host.rank());
    const runtime::FabricMaker maker{[&] { return rank == 2 ? missing : ""; },
                                     [&] {
                                       ++seen.named;
                                       runtime::FabricId id{};
                                       id[127] = std::byte{42};
                                       return id;
                                     },
                                     [&](runtime::Device&, const runtime::FabricRequest& request) {
                                       ++seen.made;
                                       seen.ids[rank] = request.id;
                                       CHECK(request.rank == host.rank());
                                       CHECK(request.ranks == 4);
                                       CHECK(request.seats.size() == plan.rounds().size());
                                       return std::make_unique<host_fabric::HostFabric>(
                                           meeting, host.rank(), *device.streams());
                                     }};
    const TensorWay way =
        runtime::tensor_way(maker, host, device, places[rank], plan, costmodel::Seconds(10));
    seen.notes[rank] = way.note;
    CHECK((way.transport != nullptr) == (seen.made > 0));
  });
}

}  // namespace

TEST_CASE("with a GPU each, all take the fabric that rank 0 has named") {
  Seen seen;
  agree(seen, {place_at("a", "1"), place_at("a", "2"), place_at("b", "1"), place_at("b", "2")});
  CHECK(seen.made == 4);
  CHECK(seen.named == 1);
  for (const auto& id : seen.ids) CHECK(id[127] == std::byte{42});
  for (const auto& note : seen.notes) CHECK(note.starts_with("messages by NCCL"));
}

TEST_CASE("two ranks of one GPU, and all send by way of the host, as they are told before") {
  Seen seen;
  agree(seen, {place_at("a", "1"), place_at("a", "2"), place_at("b", "1"), place_at("a", "2")});
  CHECK(seen.made == 0);
  CHECK(seen.named == 0);
  for (const auto& note : seen.notes) {
    CHECK(note ==
          "messages by way of the host: ranks 1, 3 share the GPU a/2: NCCL refuses two ranks of "
          "one GPU, and so all 4 go without it; start no more ranks than there are GPUs (3 here), "
          "or let each see its own (CUDA_VISIBLE_DEVICES)");
  }
}

TEST_CASE("every GPU that is shared is named, with all of its ranks") {
  const std::string reason =
      runtime::shared_device({place_at("a", "1"), place_at("b", "1"), place_at("a", "1"),
                              place_at("b", "2"), place_at("b", "1"), place_at("a", "1")});
  CHECK(reason.starts_with("ranks 0, 2, 5 share the GPU a/1; ranks 1, 4 share the GPU b/1: "));
  CHECK(reason.find("(3 here)") != reason.npos);
}

TEST_CASE("machines of one name are two, and one of two names is one, as NCCL has it") {
  CHECK(runtime::shared_device({{"node", "boot 1", "1"}, {"node", "boot 2", "1"}}) == "");
  CHECK(runtime::shared_device({{"left", "same", "1"}, {"right", "same", "1"}})
            .starts_with("ranks 0, 1 share the GPU left/1"));
  REQUIRE(std::getenv("NCCL_HOSTID") == nullptr);
  CHECK(runtime::machine_id("node").starts_with("node"));
  CHECK(runtime::machine_id("node") == runtime::machine_id("node"));
  setenv("NCCL_HOSTID", "mine", 1);
  CHECK(runtime::machine_id("node") == "mine");
  unsetenv("NCCL_HOSTID");
}

TEST_CASE("one rank without NCCL, and all send by way of the host") {
  Seen seen;
  agree(seen, {place_at("a", "1"), place_at("a", "2"), place_at("b", "1"), place_at("b", "2")},
        "NCCL cannot be loaded: it is not there");
  CHECK(seen.made == 0);
  for (const auto& note : seen.notes)
    CHECK(note == "messages by way of the host: rank 2: NCCL cannot be loaded: it is not there");
}

TEST_CASE("a rank's seats name its group and its place in it") {
  const FabricPlan plan = plan_of_four();
  const auto seats = plan.seats(3);
  REQUIRE(seats.size() == 3);  // tensor, and a channel each way
  CHECK(seats[0].name == "the tensor group of ranks 2, 3");
  CHECK(seats[0].group == 1);
  CHECK(seats[0].position == 1);
  CHECK(seats[0].size == 2);
  CHECK_FALSE(seats[0].channel);
  CHECK(seats[1].name == "the channel group of ranks 1, 3");
  CHECK(seats[1].channel);
  CHECK(seats[1].position == 1);
  CHECK(seats[2].position == 0);
}

}  // namespace tensor_route_test
