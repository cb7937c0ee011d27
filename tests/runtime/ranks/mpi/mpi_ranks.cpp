// One rank of a run under mpirun, for the tests beside it: `mpi_ranks SCENARIO`. The ranks that
// something happens to say so by their process numbers in files of the directory $MPI_RANKS_PIDS.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "costmodel/cost/collective.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/engine/emulated_real_time.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/launch.hpp"
#include "runtime/ranks/mpi_transport.hpp"
#include "tests/runtime/support/stalls.hpp"
#include "tests/runtime/support/with_overhead.hpp"
#include "tests/sanitized.hpp"

using namespace runtime;
using costmodel::CollectiveKind;
using costmodel::Seconds;
using Floats = std::vector<float>;

namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("wrong: " + what);
}

Group everyone(const Transport& transport) {
  std::vector<int> ranks(static_cast<std::size_t>(transport.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group_of(transport, ranks);
}

// Small whole numbers: their sums are exact whatever the order.
Floats values_of(int rank, std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((static_cast<std::size_t>(rank) * 31 + i * 7) % 101);
  return values;
}

Floats sums_of(int ranks, std::size_t count) {
  Floats sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Floats values = values_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  return sums;
}

// Large enough that MPI does not send them at once, and divisible by up to eight ranks.
constexpr std::size_t count = 840 * 1024;

void reduce_and_gather(Transport& transport) {
  const int n = transport.size(), me = transport.rank();
  const Floats sums = sums_of(n, count);
  TrafficCount traffic;
  Communicator all(transport, everyone(transport), traffic);
  Floats values = values_of(me, count);
  all.all_reduce(values, Reduction::sum, collective_tag(0));
  expect(values == sums, "ring all-reduce");
  const auto bytes = costmodel::collective_bytes(CollectiveKind::all_reduce,
                                                 costmodel::Bytes(count * sizeof(float)), n);
  expect(std::abs(static_cast<double>(traffic.all_reduce) - bytes.value) < 0.5, "bytes sent");
  values = values_of(me, count);
  all.tree_all_reduce(values, Reduction::sum, collective_tag(0));
  expect(values == sums, "tree all-reduce");
  values = values_of(me, count + 5);
  all.reduce_scatter(values, Reduction::sum, collective_tag(0));
  all.all_gather(values, collective_tag(1));
  expect(values == sums_of(n, count + 5), "reduce-scatter and all-gather");
  values = values_of(me, count);
  all.broadcast(values, n - 1, collective_tag(2));
  expect(values == values_of(n - 1, count), "broadcast");
  all.barrier(collective_tag(3));
}

void exchange(Transport& transport) {
  const int n = transport.size(), me = transport.rank();
  TrafficCount traffic;
  Communicator all(transport, everyone(transport), traffic);
  std::vector<Floats> sent, came;
  for (int other = 0; other < n; ++other) {
    sent.push_back(values_of(10 * me + other, 10'000));
    came.emplace_back(10'000);
  }
  const std::vector<std::span<const float>> out(sent.begin(), sent.end());
  const std::vector<std::span<float>> in(came.begin(), came.end());
  all.all_to_all(out, in, collective_tag(4));
  for (int other = 0; other < n; ++other)
    expect(came[static_cast<std::size_t>(other)] == values_of(10 * other + me, 10'000),
           "all-to-all");
}

void collectives(Transport& transport) {
  reduce_and_gather(transport);
  exchange(transport);
  if (transport.rank() == 0) std::cout << "collectives are right\n";
}

// A thread that waits for a message that never comes, until it is stopped.
class GradientStandIn {
 public:
  explicit GradientStandIn(Transport& transport)
      : transport_(transport), thread_([&transport] {
          std::byte never{};
          try {
            transport.recv((transport.rank() + 1) % transport.size(), collective_tag(8),
                           {&never, 1});
          } catch (const RunFault&) {  // the rank's own fault is the one to tell
          }
        }) {}
  ~GradientStandIn() {
    transport_.stop();
    thread_.join();
  }
  GradientStandIn(const GradientStandIn&) = delete;
  GradientStandIn& operator=(const GradientStandIn&) = delete;

 private:
  Transport& transport_;
  std::thread thread_;
};

// Rank 1 meets its end while the others wait for it.
void with_rank_1(Transport& transport, const std::function<void()>& meets) {
  float value = 0;
  TrafficCount traffic;
  Communicator all(transport, everyone(transport), traffic);
  all.barrier(collective_tag(0));
  if (transport.rank() == 1) meets();
  all.all_reduce({&value, 1}, Reduction::sum, collective_tag(1));
}

// Two threads of each rank reduce at the same time.
void beside(Transport& transport) {
  Transport* const second = transport.beside();
  expect(second != nullptr && second == transport.beside(), "a transport for another thread");
  const int n = transport.size(), me = transport.rank();
  constexpr std::size_t few = 60'000;
  const auto reduce = [&](Transport& messages, int number) {
    TrafficCount traffic;
    Communicator all(messages, everyone(messages), traffic);
    const Floats sums = sums_of(n, few);
    for (int round = 0; round < 20; ++round) {
      Floats values = values_of(me, few);
      all.all_reduce(values, Reduction::sum, collective_tag(number));
      if (values != sums) return false;
    }
    return true;
  };
  bool right = false;
  std::thread other([&] { right = reduce(*second, 6); });
  const bool own = reduce(transport, 5);
  other.join();
  expect(own && right, "all-reduces of two threads");
  if (me == 0) std::cout << "two threads of each rank are right\n";
}

// Both threads of the ranks wait, and `meets` is what rank 1 meets before its own do.
void beside_fault(Transport& transport, const std::function<void()>& meets) {
  Transport* const second = transport.beside();
  expect(second != nullptr, "a transport for another thread");
  TrafficCount traffic;
  Communicator all(transport, everyone(transport), traffic);
  all.barrier(collective_tag(0));
  GradientStandIn other(*second);
  if (transport.rank() == 1) meets();
  std::byte never{};
  transport.recv((transport.rank() + 1) % transport.size(), control_tag(7), {&never, 1});
}

// Rank 0's second thread waits for rank 1's, which has nothing to do: the first keeps it.
void beside_kept(Transport& transport) {
  Transport* const second = transport.beside();
  expect(second != nullptr, "a transport for another thread");
  std::byte never{};
  if (transport.rank() == 0) second->recv(1, collective_tag(8), {&never, 1});
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // is asked meanwhile
  if (transport.rank() == 1) transport.recv(2, control_tag(7), {&never, 1});
  std::this_thread::sleep_for(std::chrono::milliseconds(8000));
}

void other_size(Transport& transport) {
  std::vector<std::byte> message(100'000);
  if (transport.rank() == 1) transport.send(0, forward_tag(1, 2), message);
  if (transport.rank() == 0) transport.recv(1, forward_tag(1, 2), std::span(message).first(90'000));
}

// The fastest of some, in seconds: all-reduces of 4 MB by two ranks, and messages alone that bring
// as many bytes from each to the other, on the same machine at the same time.
void time_all_reduce(Transport& transport) {
  expect(transport.size() == 2, "two ranks");
  TrafficCount traffic;
  Communicator all(transport, everyone(transport), traffic);
  const auto timed = [&](double& best, const auto& exchange) {
    all.barrier(collective_tag(0));
    const auto start = std::chrono::steady_clock::now();
    exchange();
    all.barrier(collective_tag(2));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  };
  double reduced = 1e9, sent = 1e9;
  std::vector<std::byte> out(2'000'000), in(out.size());
  for (int round = 0; round < 12; ++round) {
    Floats values(1'000'000, 1.0F);
    timed(reduced, [&] { all.all_reduce(values, Reduction::sum, collective_tag(1)); });
    expect(values.back() == static_cast<float>(transport.size()), "all-reduce");
    timed(sent, [&] {
      for (int half = 0; half < 2; ++half) {
        transport.send(1 - transport.rank(), control_tag(3), out);
        transport.recv(1 - transport.rank(), control_tag(3), in);
      }
    });
  }
  if (transport.rank() == 0)
    std::cout << "all-reduce of 4 MB: " << reduced << " s, messages alone " << sent << " s\n";
}

// What the bubble may differ by; with a sanitizer, whose own work is in that of the tasks, as much
// as the makespan.
constexpr double most_points = sanitized ? 0.03 : 0.01;

struct Compared {
  double error, points;
  double stalled;  // share of the time in which the machine stood still
  bool within() const { return std::abs(error) <= 0.03 && std::abs(points) <= most_points; }
};

Compared emulate_once(Transport& transport, int micro_batches) {
  const int p = transport.size();
  costmodel::PipelineTimes times;
  for (int k = 0; k < p; ++k) {
    times.forward.emplace_back(5e-3 + 1e-3 * (3 * k % 5));
    times.backward.emplace_back(2 * times.forward.back().value);
  }
  times.transfer = Seconds(5e-4);
  const RealTimeOptions options{.message_bytes = 4096, .urgent = true};
  const auto schedule =
      costmodel::generate(costmodel::ScheduleKind::one_f_one_b, p, 1, micro_batches);
  stalls::Watch watch;
  const auto expected = with_overhead(times, task_overhead(transport, options));
  const Measured predicted =
      measured(costmodel::simulate_timeline(costmodel::compile(schedule), expected));
  const auto events = emulate_rank(transport, costmodel::lower(schedule), times, options);
  const Measured real = measured(transport, events);
  float stalled = static_cast<float>(watch.share());  // on the rank where it was worst
  TrafficCount uncounted;
  Communicator(transport, everyone(transport), uncounted)
      .all_reduce({&stalled, 1}, Reduction::max, collective_tag(9));
  return {real.makespan.value / predicted.makespan.value - 1, real.bubble - predicted.bubble,
          stalled};
}

// Makespan and bubble of a pipeline as predicted, in a run in which the machine did not stand
// still. All ranks know the same figures, so that they stop together.
void emulate(Transport& transport) {
  // A machine that stands still for a share of the makespan moves the bubble by as much.
  constexpr double quiet = most_points;
  Compared best{1e9, 1e9, 1};
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Compared now = emulate_once(transport, 32);
    if (now.stalled > quiet) continue;
    if (now.within() || std::abs(now.error) < std::abs(best.error)) best = now;
    if (best.within()) break;
  }
  if (best.stalled > quiet) {
    if (transport.rank() == 0) std::cout << "skipped: the machine stood still too often\n";
    return;
  }
  if (transport.rank() == 0)
    std::cout << "makespan " << 100 * best.error << " %, bubble " << 100 * best.points
              << " points from the prediction\n";
  expect(best.within(), "makespan and bubble");
}

void write_pid(const Transport& transport) {
  if (const char* const directory = std::getenv("MPI_RANKS_PIDS"))
    std::ofstream(std::string(directory) + "/" + std::to_string(transport.rank())) << getpid();
}

using Scenarios = std::map<std::string, std::function<void(Transport&)>>;

const Scenarios sound{{"collectives", collectives},
                      {"time-all-reduce", time_all_reduce},
                      {"emulate", emulate},
                      {"beside", beside}};

const Scenarios failing{
    {"killed", [](Transport& t) { with_rank_1(t, [] { raise(SIGKILL); }); }},
    {"stopped", [](Transport& t) { with_rank_1(t, [] { raise(SIGSTOP); }); }},
    {"throws",
     [](Transport& t) { with_rank_1(t, [] { throw std::runtime_error("the disk is full"); }); }},
    {"exits", [](Transport& t) { with_rank_1(t, [] { std::_Exit(3); }); }},
    {"ends-early",
     [](Transport& t) {
       if (t.rank() != 1) with_rank_1(t, [] {});
     }},
    {"other-size", other_size},
    {"beside-stopped", [](Transport& t) { beside_fault(t, [] { raise(SIGSTOP); }); }},
    {"beside-throws",
     [](Transport& t) { beside_fault(t, [] { throw std::runtime_error("the disk is full"); }); }},
    {"beside-kept", beside_kept},
    {"missing-rank", [](Transport& t) { require_size(t, t.size() + 1, "the plan"); }}};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  const bool fails = failing.contains(name);
  if (!fails && !sound.contains(name)) {
    std::cerr << "usage: mpi_ranks SCENARIO\n";
    return 2;
  }
  const auto told = launched();
  const bool in_vain = name.ends_with("stopped") || name == "ends-early" || name == "beside-kept";
  const MpiOptions options{.patience = Seconds(in_vain ? 2
                                               : fails ? 20
                                                       : 60),
                           .beside = name.starts_with("beside")};
  return run_mpi(options, [&](Transport& transport) {
    write_pid(transport);
    expect(told && told->rank == transport.rank() && told->world == transport.size(),
           "what the environment says of ranks");
    (fails ? failing : sound).at(name)(transport);
  });
}
