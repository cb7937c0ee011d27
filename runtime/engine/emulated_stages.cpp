#include "runtime/engine/emulated_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "costmodel/schedule/simulator.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

EmulatedStages::EmulatedStages(Transport& transport, const Schedule& lowered,
                               const PipelineTimes& times)
    : transport_(transport), schedule_(lowered), times_(times) {}

void EmulatedStages::forward(int stage, int) {
  work(times_.forward[static_cast<std::size_t>(stage)]);
}

void EmulatedStages::backward(int stage, int) {
  work(times_.backward[static_cast<std::size_t>(stage)]);
}

void EmulatedStages::weight_gradient(int stage, int) {
  const auto& durations = times_.weight_gradient;
  work(durations.empty() ? Seconds(0) : durations[static_cast<std::size_t>(stage)]);
}

void EmulatedStages::together(std::span<const Action> cell) { work(cell_time(cell, times_)); }

void EmulatedStages::send_forward(int stage, int micro_batch) {
  deliver(schedule_.home_of(stage + 1, micro_batch), forward_tag(stage, micro_batch));
}

void EmulatedStages::recv_forward(int stage, int micro_batch) {
  accept(schedule_.home_of(stage, micro_batch), forward_tag(stage, micro_batch));
}

void EmulatedStages::send_backward(int stage, int micro_batch) {
  deliver(schedule_.home_of(stage - 1, micro_batch), backward_tag(stage, micro_batch));
}

void EmulatedStages::recv_backward(int stage, int micro_batch) {
  accept(schedule_.home_of(stage, micro_batch), backward_tag(stage, micro_batch));
}

void VirtualStages::work(Seconds duration) { clock_ += duration.value; }

void VirtualStages::deliver(int to, int tag) {
  const double arrival = clock_ + times_.transfer.value;
  transport_.send(to, tag, std::as_bytes(std::span(&arrival, 1)));
  if (times_.blocking) clock_ = arrival;
}

void VirtualStages::accept(int from, int tag) {
  double arrival = 0;
  transport_.recv(from, tag, std::as_writable_bytes(std::span(&arrival, 1)));
  clock_ = std::max(clock_, arrival);
}

namespace {

// The mailbox of ranks that share a thread: a rank cannot wait, but can look whether a message is
// there.
class Post {
 public:
  using Message = std::vector<std::byte>;
  using Address = std::array<int, 3>;  // to, from, tag

  bool has(const Address& address) const { return mail_.find(address) != mail_.end(); }
  void put(const Address& address, std::span<const std::byte> message) {
    mail_[address].emplace_back(message.begin(), message.end());
  }
  static RunFault not_sent(const Address& address) {
    return {address[0], fmt::format("rank {} wants {} from rank {} before it was sent", address[0],
                                    tag_text(address[2]), address[1])};
  }
  Message take(const Address& address) {
    const auto box = mail_.find(address);
    if (box == mail_.end()) throw not_sent(address);
    Message message = std::move(box->second.front());
    box->second.pop_front();
    if (box->second.empty()) mail_.erase(box);
    return message;
  }

 private:
  std::map<Address, std::deque<Message>> mail_;
};

class PostOffice : public Transport {
 public:
  PostOffice(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(int to, int tag, std::span<const std::byte> message) override {
    post_.put({to, rank_, tag}, message);
  }
  void recv(int from, int tag, std::span<std::byte> message) override {
    const Post::Message came = post_.take({rank_, from, tag});
    if (came.size() != message.size()) {
      throw RunFault(from, fmt::format("rank {} sent {} bytes, {} are wanted: {}", from,
                                       came.size(), message.size(), tag_text(tag)));
    }
    if (!came.empty()) std::memcpy(message.data(), came.data(), came.size());
  }

 private:
  Post& post_;
  const int rank_, size_;
};

// One rank and its progress.
class Walker {
 public:
  Walker(Post& post, int rank, const Schedule& lowered, const PipelineTimes& times)
      : post_(post),
        lowered_(lowered),
        actions_(lowered.actions[static_cast<std::size_t>(rank)]),
        office_(post, rank, lowered.ranks),
        stages_(office_, lowered, times) {}

  bool done() const { return next_ == actions_.size(); }

  // Runs the rank until it waits for a message; true when it made progress.
  bool walk(std::vector<costmodel::Event>& events) {
    const std::size_t start = next_;
    while (!done() && ready(actions_[next_])) {
      const auto cell = cell_at(actions_, next_);
      events.push_back(execute(cell, office_.rank(), stages_));
      next_ += cell.size();
    }
    return next_ > start;
  }

  const Action& next() const { return actions_[next_]; }

 private:
  bool ready(const Action& a) const {
    const int from = lowered_.home_of(a.stage, a.micro_batch);
    if (a.kind == ActionKind::recv_forward)
      return post_.has({office_.rank(), from, forward_tag(a.stage, a.micro_batch)});
    if (a.kind == ActionKind::recv_backward)
      return post_.has({office_.rank(), from, backward_tag(a.stage, a.micro_batch)});
    return true;
  }

  const Post& post_;
  const Schedule& lowered_;
  const std::vector<Action>& actions_;
  PostOffice office_;
  VirtualStages stages_;
  std::size_t next_ = 0;
};

}  // namespace

Timeline emulate_virtual(const Schedule& lowered, const PipelineTimes& times) {
  Post post;
  std::vector<std::unique_ptr<Walker>> walkers;
  for (int rank = 0; rank < lowered.ranks; ++rank)
    walkers.push_back(std::make_unique<Walker>(post, rank, lowered, times));
  std::vector<std::vector<costmodel::Event>> events(walkers.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < walkers.size(); ++rank)
      moved = walkers[rank]->walk(events[rank]) || moved;
  }
  Timeline timeline{lowered.ranks, {}};
  for (std::size_t rank = 0; rank < walkers.size(); ++rank) {
    if (!walkers[rank]->done()) {
      throw RunFault(static_cast<int>(rank), fmt::format("rank {} waits for ever at {}", rank,
                                                         to_text(walkers[rank]->next())));
    }
    timeline.events.insert(timeline.events.end(), events[rank].begin(), events[rank].end());
  }
  return timeline;
}

}  // namespace runtime
