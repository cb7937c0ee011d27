#include "runtime/tensor_way.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "runtime/tags.hpp"

namespace runtime {

namespace {

constexpr int asked = 4, answered = 5;  // control messages

void put(Transport& host, int to, int number, const std::string& text) {
  const std::uint64_t size = text.size();
  host.send(to, control_tag(number), std::as_bytes(std::span(&size, 1)));
  host.send(to, control_tag(number), std::as_bytes(std::span(text)));
}

std::string get(Transport& host, int from, int number) {
  std::uint64_t size = 0;
  host.recv(from, control_tag(number), std::as_writable_bytes(std::span(&size, 1)));
  std::string text(size, ' ');
  host.recv(from, control_tag(number), std::as_writable_bytes(std::span(text)));
  return text;
}

// What each rank said, as rank 0 hears it.
struct Offer {
  std::vector<std::string> places, missing;
};

std::string against(const Offer& offer) {
  for (std::size_t rank = 0; rank < offer.missing.size(); ++rank)
    if (!offer.missing[rank].empty()) return fmt::format("rank {}: {}", rank, offer.missing[rank]);
  return shared_device(offer.places);
}

// Rank 0 hears all, decides and tells all: what stands against a fabric, and else the id.
std::string decided(Transport& host, const std::string& place, const std::string& missing,
                    const FabricMaker& maker, FabricId& id) {
  const auto bytes = std::as_writable_bytes(std::span(id));
  if (host.rank() != 0) {
    put(host, 0, asked, place);
    put(host, 0, asked, missing);
    std::string reason = get(host, 0, answered);
    if (reason.empty()) host.recv(0, control_tag(answered), bytes);
    return reason;
  }
  Offer offer{{place}, {missing}};
  for (int rank = 1; rank < host.size(); ++rank) {
    offer.places.push_back(get(host, rank, asked));
    offer.missing.push_back(get(host, rank, asked));
  }
  std::string reason = against(offer);
  if (reason.empty()) id = maker.make_id();
  for (int rank = 1; rank < host.size(); ++rank) {
    put(host, rank, answered, reason);
    if (reason.empty()) host.send(rank, control_tag(answered), bytes);
  }
  return reason;
}

}  // namespace

std::string shared_device(const std::vector<std::string>& places) {
  std::map<std::string, std::size_t> first;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const auto [found, fresh] = first.try_emplace(places[rank], rank);
    if (!fresh) {
      return fmt::format("ranks {} and {} share the GPU {}, which NCCL refuses", found->second,
                         rank, places[rank]);
    }
  }
  return "";
}

TensorWay tensor_way(const FabricMaker& maker, Transport& host, Device& device,
                     const std::string& place, FabricPlan plan, costmodel::Seconds patience) {
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
