#include "runtime/ranks/fabric_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// How many receives of one channel are posted ahead: one to compute with, one in transit.
constexpr std::size_t ahead = 2;

}  // namespace

// A group's collectives, on a stream ordered after the compute stream.
class FabricTransport::Group : public GroupOperations {
 public:
  Group(FabricTransport& transport, int round, Streams::Stream stream)
      : transport_(transport),
        streams_(transport.streams_),
        round_(round),
        stream_(stream),
        done_(streams_.make_event()) {
    const FabricRound& made = transport.plan_.rounds()[static_cast<std::size_t>(round)];
    name_ = made.name_for(transport.rank());
    ranks_ = made.groups[static_cast<std::size_t>(made.group_of(transport.rank()))];
  }

  const std::vector<int>& ranks() const override { return ranks_; }
  void all_reduce(const Vector& values, Reduction reduction) override {
    run("an all-reduce",
        [&] { transport_.fabric_.all_reduce(round_, stream_, values, reduction); });
  }
  void reduce_scatter(const Vector& values, Reduction reduction) override {
    run("a reduce-scatter",
        [&] { transport_.fabric_.reduce_scatter(round_, stream_, values, reduction); });
  }
  void all_gather(const Vector& values) override {
    run("an all-gather", [&] { transport_.fabric_.all_gather(round_, stream_, values); });
  }

  void beside(bool on) override { beside_ = on; }
  void join() override {
    transport_.await([&](const Given& given) { return given.stream == stream_; });
    streams_.wait(Streams::compute, done_);
  }
  std::vector<std::pair<Seconds, Seconds>> spans(Streams::Event since) override {
    std::vector<std::pair<Seconds, Seconds>> found;
    for (const auto& [start, end] : std::exchange(spans_, {})) {
      found.emplace_back(streams_.time(since, start), streams_.time(since, end));
      spare_.insert(spare_.end(), {start, end});
    }
    return found;
  }

 private:
  template <class Work>
  void run(const char* what, Work work) {
    transport_.after_compute(stream_);
    if (beside_) spans_.emplace_back(mark(), 0);
    work();
    if (beside_) spans_.back().second = mark();
    streams_.record(stream_, done_);
    transport_.give(stream_, fmt::format("{} of {}", what, name_), transport_.rank(), !beside_);
    if (!beside_) streams_.wait(Streams::compute, done_);
  }

  Streams::Event mark() {
    if (spare_.empty()) spare_.push_back(streams_.make_event());
    const Streams::Event event = spare_.back();
    spare_.pop_back();
    streams_.record(stream_, event);
    return event;
  }

  FabricTransport& transport_;
  Streams& streams_;
  const int round_;
  const Streams::Stream stream_;
  const Streams::Event done_;
  std::string name_;
  std::vector<int> ranks_;
  bool beside_ = false;
  std::vector<std::pair<Streams::Event, Streams::Event>> spans_;
  std::vector<Streams::Event> spare_;
};

FabricTransport::FabricTransport(Transport& host, const FabricPlan& plan, Fabric& fabric,
                                 Streams& streams, Memory& memory, Seconds patience)
    : host_(host),
      plan_(plan),
      fabric_(fabric),
      streams_(streams),
      memory_(memory),
      patience_(patience),
      computed_(streams.make_event()),
      moved_(Clock::now()) {
  streams_.watch([this] { look(); });
}

FabricTransport::~FabricTransport() {
  streams_.watch({});
  const bool over = std::ranges::all_of(under_way_, [&](const Given& given) {
    try {
      return streams_.passed(given.event);
    } catch (const std::exception&) {  // the error was reported, or no longer matters
      return false;
    }
  });
  if (!over) fabric_.abort();
  for (auto& [round, channel] : channels_)
    for (const Slot& slot : channel.slots) memory_.release(slot.data);
}

FabricTransport::Channel& FabricTransport::channel(int from, int to, int tag) {
  const int round = plan_.round_of_message(from, to, tag);
  const auto [found, fresh] = channels_.try_emplace(round);
  if (fresh) {
    found->second.round = round;
    found->second.stream = streams_.make_stream();
  }
  return found->second;
}

FabricTransport::Slot FabricTransport::new_slot(std::size_t bytes) {
  return {memory_.allocate(bytes), bytes, streams_.make_event(), streams_.make_event()};
}

// A slot whose message has been sent; otherwise a new one, so that the sender never waits for the
// receiver.
FabricTransport::Slot& FabricTransport::sending_slot(Channel& channel, std::size_t bytes) {
  for (Slot& slot : channel.slots)
    if (slot.bytes >= bytes && streams_.passed(slot.event)) return slot;
  return channel.slots.emplace_back(new_slot(bytes));
}

// Round robin, so that the previous slot can be read concurrently.
std::size_t FabricTransport::receiving_slot(Channel& channel, std::size_t bytes) {
  const std::size_t index = channel.received++ % ahead;
  if (index == channel.slots.size()) channel.slots.push_back(new_slot(bytes));
  Slot& slot = channel.slots[index];
  if (slot.bytes < bytes) channel.slots.push_back(std::exchange(slot, new_slot(bytes)));
  return index;
}

// Orders the stream after the compute stream's work so far.
void FabricTransport::after_compute(Streams::Stream stream) {
  streams_.record(Streams::compute, computed_);
  streams_.wait(stream, computed_);
}

void FabricTransport::send(int to, int tag, std::span<const std::byte> message) {
  Channel& way = channel(rank(), to, tag);
  Slot& slot = sending_slot(way, message.size());
  streams_.copy(Streams::compute, message.data(), slot.data, message.size());
  after_compute(way.stream);
  fabric_.send(way.round, way.stream, {static_cast<const std::byte*>(slot.data), message.size()});
  streams_.record(way.stream, slot.event);
  give(way.stream, fmt::format("rank {} to take {}", to, tag_text(tag)), to, false);
}

void FabricTransport::expect(int from, int tag, std::size_t bytes) {
  Channel& way = channel(from, rank(), tag);
  way.expected.push_back({from, tag, bytes});
  receive_ahead(way);
}

void FabricTransport::receive_ahead(Channel& way) {
  while (way.arriving.size() < ahead && !way.expected.empty()) {
    const Expected next = way.expected.front();
    way.expected.pop_front();
    const bool fresh = way.slots.size() < ahead;
    const std::size_t index = receiving_slot(way, next.bytes);
    Slot& slot = way.slots[index];
    if (fresh) after_compute(way.stream);  // compute may have used that memory before
    streams_.wait(way.stream, slot.taken);
    fabric_.recv(way.round, way.stream, {static_cast<std::byte*>(slot.data), next.bytes});
    streams_.record(way.stream, slot.event);
    const auto given =
        give(way.stream, fmt::format("{} from rank {}", tag_text(next.tag), next.from), next.from,
             false);
    way.arriving.push_back({next, index, given});
  }
}

void FabricTransport::recv(int from, int tag, std::span<std::byte> message) {
  Channel& way = channel(from, rank(), tag);
  if (way.arriving.empty()) expect(from, tag, message.size());
  const auto [next, index, given] = way.arriving.front();
  if (next.tag != tag || next.bytes != message.size()) {
    throw RunFault(rank(),
                   fmt::format("rank {} wants {} bytes, {}, but {} bytes, {}, come first", rank(),
                               message.size(), tag_text(tag), next.bytes, tag_text(next.tag)));
  }
  await([given = given](const Given& one) { return one.event == given; });
  Slot& slot = way.slots[index];
  streams_.wait(Streams::compute, slot.event);
  streams_.copy(Streams::compute, slot.data, message.data(), message.size());
  streams_.record(Streams::compute, slot.taken);
  way.arriving.pop_front();
  receive_ahead(way);
}

GroupOperations* FabricTransport::group(FabricUse use) {
  const int round = plan_.round_of(use);
  if (round < 0 || plan_.rounds()[static_cast<std::size_t>(round)].group_of(rank()) < 0)
    return nullptr;
  auto& made = groups_[use];
  if (made) return made.get();
  Streams::Stream stream = 0;
  if (use == FabricUse::replicas) {
    stream = streams_.make_stream();
  } else {
    if (tensor_stream_ == 0) tensor_stream_ = streams_.make_stream();
    stream = tensor_stream_;
  }
  made = std::make_unique<Group>(*this, round, stream);
  return made.get();
}

Streams::Event FabricTransport::give(Streams::Stream stream, std::string what, int other,
                                     bool awaited) {
  if (under_way_.size() >= 64) forget_passed();
  if (spare_.empty()) spare_.push_back(streams_.make_event());
  const Streams::Event event = spare_.back();
  spare_.pop_back();
  streams_.record(stream, event);
  under_way_.push_back({event, stream, std::move(what), other, false});
  if (awaited) await([&](const Given& given) { return given.event == event; });
  return event;
}

template <class Which>
void FabricTransport::await(Which which) {
  for (Given& given : under_way_) {
    if (given.awaited || !which(given)) continue;
    given.awaited = true;
    moved_ = Clock::now();
  }
}

void FabricTransport::forget_passed() {
  const std::size_t before = under_way_.size();
  std::erase_if(under_way_, [&](const Given& given) {
    if (!streams_.passed(given.event)) return false;
    spare_.push_back(given.event);
    return true;
  });
  if (under_way_.size() < before) moved_ = Clock::now();
}

// Ends the run when the fabric has failed, when other ranks have given up, or on a timeout without
// progress.
void FabricTransport::look() {
  forget_passed();
  host_.heed();
  if (const std::string fault = fabric_.fault(); !fault.empty())
    throw RunFault(rank(), fmt::format("rank {}: {}", rank(), fault));
  if (std::chrono::duration<double>(Clock::now() - moved_).count() < patience_.value) return;
  const auto oldest = std::ranges::find_if(under_way_, &Given::awaited);
  if (oldest == under_way_.end()) return;
  throw RunFault(oldest->other, fmt::format("rank {} waited {:g} s for {}", rank(), patience_.value,
                                            oldest->what));
}

void FabricTransport::settle() {
  await([](const Given&) { return true; });
  for (look(); !under_way_.empty(); look())
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace runtime
