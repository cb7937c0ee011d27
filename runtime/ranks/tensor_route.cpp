#include "runtime/ranks/tensor_route.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "costmodel/base/input_file.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

namespace {

constexpr int asked = 4, answered = 5;  // control messages

// Every rank's message, gathered on rank 0.
struct Offer {
  std::vector<DevicePlace> places;
  std::vector<std::string> missing;
};

std::string against(const Offer& offer) {
  for (std::size_t rank = 0; rank < offer.missing.size(); ++rank)
    if (!offer.missing[rank].empty()) return fmt::format("rank {}: {}", rank, offer.missing[rank]);
  return shared_device(offer.places);
}

void put_place(Transport& host, const DevicePlace& place) {
  for (const std::string& part : {place.host, place.machine, place.bus})
    send_text(host, 0, control_tag(asked), part);
}

DevicePlace get_place(Transport& host, int from) {
  DevicePlace place;
  for (std::string* const part : {&place.host, &place.machine, &place.bus})
    *part = recv_text(host, from, control_tag(asked));
  return place;
}

// Rank 0 gathers, decides and broadcasts: why no fabric is possible, or else its id.
std::string decided(Transport& host, const DevicePlace& place, const std::string& missing,
                    const FabricMaker& maker, FabricId& id) {
  const auto bytes = std::as_writable_bytes(std::span(id));
  if (host.rank() != 0) {
    put_place(host, place);
    send_text(host, 0, control_tag(asked), missing);
    std::string reason = recv_text(host, 0, control_tag(answered));
    if (reason.empty()) host.recv(0, control_tag(answered), bytes);
    return reason;
  }
  Offer offer{{place}, {missing}};
  for (int rank = 1; rank < host.size(); ++rank) {
    offer.places.push_back(get_place(host, rank));
    offer.missing.push_back(recv_text(host, rank, control_tag(asked)));
  }
  std::string reason = against(offer);
  if (reason.empty()) id = maker.make_id();
  for (int rank = 1; rank < host.size(); ++rank) {
    send_text(host, rank, control_tag(answered), reason);
    if (reason.empty()) host.send(rank, control_tag(answered), bytes);
  }
  return reason;
}

// The ranks of each device, devices in the order of their first rank.
std::vector<std::vector<std::size_t>> ranks_by_device(const std::vector<DevicePlace>& places) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  std::vector<std::vector<std::size_t>> devices;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const auto [found, fresh] =
        known.try_emplace({places[rank].machine, places[rank].bus}, devices.size());
    if (fresh) devices.emplace_back();
    devices[found->second].push_back(rank);
  }
  return devices;
}

}  // namespace

std::string machine_id(const std::string& host) {
  if (const char* const set = std::getenv("NCCL_HOSTID"); set != nullptr) return set;
  const std::string boot = costmodel::system_text("/proc/sys/kernel/random/boot_id");
  return host + boot.substr(0, boot.find('\n'));
}

std::string shared_device(const std::vector<DevicePlace>& places) {
  const auto devices = ranks_by_device(places);
  if (devices.size() == places.size()) return "";
  std::string shared;
  for (const auto& ranks : devices) {
    if (ranks.size() == 1) continue;
    const DevicePlace& at = places[ranks.front()];
    shared += fmt::format("{}ranks {} share the GPU {}/{}", shared.empty() ? "" : "; ",
                          fmt::join(ranks, ", "), at.host, at.bus);
  }
  return fmt::format(
      "{}: NCCL refuses two ranks of one GPU, and so all {} go without it; start no more ranks "
      "than there are GPUs ({} here), or let each see its own (CUDA_VISIBLE_DEVICES)",
      shared, places.size(), devices.size());
}

TensorWay tensor_way(const FabricMaker& maker, Transport& host, Device& device,
                     const DevicePlace& place, FabricPlan plan, costmodel::Seconds patience) {
  TensorWay way;
  if (host.size() == 1) return way;
  std::string missing = maker.missing();
  if (missing.empty() && device.streams() == nullptr) missing = "its device has no streams";
  FabricRequest request{.rank = host.rank(),
                        .ranks = host.size(),
                        .seats = plan.seats(host.rank()),
                        .patience = patience,
                        .heed = [&host] { host.heed(); }};
  const std::string reason = decided(host, place, missing, maker, request.id);
  if (!reason.empty()) {
    way.note = fmt::format("messages by way of the host: {}", reason);
    return way;
  }
  way.plan = std::make_unique<FabricPlan>(std::move(plan));
  way.fabric = maker.make(device, request);
  way.transport = std::make_unique<FabricTransport>(host, *way.plan, *way.fabric, *device.streams(),
                                                    device.memory(), patience);
  way.note = "messages by NCCL, counted as rings send them";
  return way;
}

}  // namespace runtime
