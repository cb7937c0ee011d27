// Streams and a fabric on the host, with a GPU's rules: a stream is a thread that runs its work in
// order; a send waits in its stream until it is received, a collective until the complete group has
// arrived. The calling thread runs the compute stream's work at once, so that a missing wait shows
// as a wrong number; other streams are delayed, so that it does show.
//
// Everything enqueued on a stream must be ordered after all earlier compute work (checked through
// the events), because it may read and write what compute does.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backend/fabric.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/devices/device_wrapper.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/fabric_plan.hpp"

namespace host_fabric {

using runtime::Streams;

class HostStreams : public Streams {
 public:
  ~HostStreams() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (auto& line : lines_) line->thread.join();
  }

  Stream make_stream() override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::make_unique<Line>());
    Line& line = *lines_.back();
    line.thread = std::thread([this, &line] { run(line); });
    return static_cast<Stream>(lines_.size());
  }
  Event make_event() override {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::make_shared<Passing>());
    return static_cast<Event>(events_.size() - 1);
  }
  // A record makes a new passing: those who wait for the last one go on waiting for that.
  void record(Stream stream, Event event) override {
    const auto passing = std::make_shared<Passing>();
    {
      const std::lock_guard lock(mutex_);
      passing->passed = stream == compute;
      if (stream == compute) passing->time = now();
      passing->computed = stream == compute ? computed_ : line(stream).computed;
      events_[static_cast<std::size_t>(event)] = passing;
    }
    if (stream == compute) return;
    push(stream, [this, passing] {
      const std::lock_guard lock(mutex_);
      passing->passed = true;
      passing->time = now();
      changed_.notify_all();
    });
  }
  void wait(Stream stream, Event event) override {
    std::unique_lock lock(mutex_);
    const auto passing = events_[static_cast<std::size_t>(event)];
    if (stream == compute) {
      while (!passing->passed) {
        lock.unlock();
        if (look_) look_();
        lock.lock();
        changed_.wait_for(lock, std::chrono::milliseconds(1));
      }
      return;
    }
    line(stream).computed = std::max(line(stream).computed, passing->computed);
    lock.unlock();
    push(stream, [this, passing] {
      std::unique_lock own(mutex_);
      changed_.wait(own, [&] { return passing->passed || ended_; });
    });
  }
  void copy(Stream stream, const void* from, void* to, std::size_t bytes) override {
    CHECK(stream == compute);
    computes();
    runtime::host_memory().copy(from, to, bytes);
  }
  bool passed(Event event) override {
    const std::lock_guard lock(mutex_);
    return events_[static_cast<std::size_t>(event)]->passed;
  }
  costmodel::Seconds time(Event since, Event event) override {
    wait(compute, since);
    wait(compute, event);
    const std::lock_guard lock(mutex_);
    return costmodel::Seconds(events_[static_cast<std::size_t>(event)]->time -
                              events_[static_cast<std::size_t>(since)]->time);
  }
  void watch(std::function<void()> look) override { look_ = std::move(look); }

  // `work` in the stream. It has to follow what compute was given so far.
  void push(Stream stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    line(stream).waiting.push_back(std::move(work));
    changed_.notify_all();
  }
  bool follows_compute(Stream stream) {
    const std::lock_guard lock(mutex_);
    return line(stream).computed == computed_;
  }
  void computes() {
    const std::lock_guard lock(mutex_);
    ++computed_;
  }

 private:
  struct Line {
    std::deque<std::function<void()>> waiting;
    std::int64_t computed = 0;  // what compute was given before what comes next
    std::thread thread;
  };
  struct Passing {
    bool passed = true;
    double time = 0;
    std::int64_t computed = 0;
  };

  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  Line& line(Stream stream) { return *lines_.at(static_cast<std::size_t>(stream - 1)); }
  void run(Line& line) {
    for (int turn = 0;; ++turn) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || !line.waiting.empty(); });
        if (ended_) return;
        work = std::move(line.waiting.front());
        line.waiting.pop_front();
      }
      if (turn % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(30));
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::shared_ptr<Passing>> events_;
  std::int64_t computed_ = 0;
  std::function<void()> look_;
  bool ended_ = false;
};

// Where the ranks of all communicators meet.
class Meeting {
 public:
  explicit Meeting(const runtime::FabricPlan& plan) : plan_(plan) {}
  const runtime::FabricPlan& plan() const { return plan_; }

  // Every member of the group of `rank` brings its part; the last to come runs `last` over all
  // parts, in order of the group. Returns false where it was given up. Once abort() has returned
  // no part is read or written any more: its owner may free it.
  using Parts = std::vector<void*>;
  bool meet(int round, int rank, void* part, const std::function<void(const Parts&)>& last) {
    const auto& made = plan_.rounds()[static_cast<std::size_t>(round)];
    const int group = made.group_of(rank);
    const auto& ranks = made.groups[static_cast<std::size_t>(group)];
    const auto position = std::ranges::find(ranks, rank) - ranks.begin();
    std::unique_lock lock(mutex_);
    if (aborted_) return false;
    Table& table = tables_[{round, group}];
    table.parts.resize(ranks.size());
    table.parts[static_cast<std::size_t>(position)] = part;
    const std::int64_t turn = table.turn;
    if (++table.there == ranks.size()) {
      last(table.parts);
      table.there = 0;
      ++table.turn;
      changed_.notify_all();
      return true;
    }
    changed_.wait(lock, [&] { return table.turn != turn || aborted_; });
    return table.turn != turn;
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    changed_.notify_all();
  }
  std::atomic<int> failing_rank{-1};  // whose fabric says that something went wrong

 private:
  struct Table {
    Parts parts;
    std::size_t there = 0;
    std::int64_t turn = 0;
  };
  const runtime::FabricPlan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, Table> tables_;
  bool aborted_ = false;
};

class HostFabric : public runtime::Fabric {
 public:
  HostFabric(Meeting& meeting, int rank, HostStreams& streams)
      : meeting_(meeting), rank_(rank), streams_(streams) {}

  void send(int round, Stream stream, std::span<const std::byte> message) override {
    exchange(round, stream, const_cast<std::byte*>(message.data()), message.size(), true);
  }
  void recv(int round, Stream stream, std::span<std::byte> message) override {
    exchange(round, stream, message.data(), message.size(), false);
  }
  void all_reduce(int round, Stream stream, const runtime::Vector& v,
                  runtime::Reduction how) override {
    give(round, stream, v, [this, v, how](const Meeting::Parts& parts) {
      reduce(parts, v, how);
      for (void* const other : parts) memory_.copy(parts[0], other, v.bytes());
    });
  }
  // Chunk i of rank i, as the engine wants it, whatever the others hold afterwards.
  void reduce_scatter(int round, Stream stream, const runtime::Vector& v,
                      runtime::Reduction how) override {
    give(round, stream, v, [this, v, how](const Meeting::Parts& parts) {
      std::vector<std::byte> sum(v.bytes()), own(v.bytes());
      memory_.read(parts[0], own);
      reduce(parts, v, how);
      memory_.read(parts[0], sum);
      memory_.write(parts[0], v.bytes(), [&](auto to) { std::ranges::copy(own, to.begin()); });
      const int n = static_cast<int>(parts.size());
      for (int i = 0; i < n; ++i) {
        const auto chunk = runtime::chunk_of(v.size, n, i);
        const std::size_t width = runtime::bytes_of(v.number);
        auto* const to = static_cast<std::byte*>(parts[static_cast<std::size_t>(i)]);
        memory_.write(to + chunk.begin * width, chunk.size * width, [&](auto into) {
          std::memcpy(into.data(), sum.data() + chunk.begin * width, into.size());
        });
      }
    });
  }
  void all_gather(int round, Stream stream, const runtime::Vector& v) override {
    give(round, stream, v, [this, v](const Meeting::Parts& parts) {
      const int n = static_cast<int>(parts.size());
      for (int i = 0; i < n; ++i) {
        const auto chunk = runtime::chunk_of(v.size, n, i);
        const std::size_t at = chunk.begin * runtime::bytes_of(v.number);
        for (void* const other : parts)
          memory_.copy(static_cast<std::byte*>(parts[static_cast<std::size_t>(i)]) + at,
                       static_cast<std::byte*>(other) + at,
                       chunk.size * runtime::bytes_of(v.number));
      }
    });
  }
  std::string fault() override {
    return meeting_.failing_rank == rank_ ? "the tensor group's network went away" : "";
  }
  void abort() noexcept override { meeting_.abort(); }

 private:
  void give(int round, Stream stream, const runtime::Vector& v,
            std::function<void(const Meeting::Parts&)> last) {
    CHECK(streams_.follows_compute(stream));
    streams_.push(stream, [this, round, v, last = std::move(last)] {
      meeting_.meet(round, rank_, v.data, last);
    });
  }
  void exchange(int round, Stream stream, void* data, std::size_t bytes, bool sending) {
    const auto& made = meeting_.plan().rounds()[static_cast<std::size_t>(round)];
    const auto& pair = made.groups[static_cast<std::size_t>(made.group_of(rank_))];
    CHECK((pair[0] == rank_) == sending);
    streams_.push(stream, [this, round, data, bytes] {
      meeting_.meet(round, rank_, data, [this, bytes](const Meeting::Parts& parts) {
        memory_.copy(parts[0], parts[1], bytes);
      });
    });
  }
  void reduce(const Meeting::Parts& parts, const runtime::Vector& v, runtime::Reduction how) {
    for (std::size_t i = 1; i < parts.size(); ++i)
      memory_.reduce(how, {parts[i], v.size, v.number}, {parts[0], v.size, v.number});
  }

  Meeting& meeting_;
  const int rank_;
  HostStreams& streams_;
  runtime::Memory& memory_ = runtime::host_memory();
};

struct OwnCpu {  // a base, so that it is made first
  runtime::CpuDevice cpu;
};

// A CPU that says so when it computes.
class StreamedCpu : OwnCpu, public runtime::DeviceAround {
 public:
  StreamedCpu() : DeviceAround(cpu) {}
  HostStreams* streams() override { return &streams_; }

 private:
  void around(Work work, const runtime::OpCall& call) override {
    streams_.computes();
    through(work, call);
  }

  HostStreams streams_;
};

}  // namespace host_fabric
