#include "runtime/transport_mpi.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#ifdef SHARDPLAN_WITH_MPI
#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/tags.hpp"
#endif

namespace runtime {

#ifndef SHARDPLAN_WITH_MPI

std::string mpi_missing() {
  return "this build has no MPI: configure it where CMake finds one (Debian: libopenmpi-dev)";
}

int run_mpi(const MpiOptions&, const std::function<void(Transport&)>&) {
  fmt::print(stderr, "shardplan: {}\n", mpi_missing());
  return 4;
}

#else

std::string mpi_missing() { return ""; }

namespace {

using Clock = std::chrono::steady_clock;

// Where MPI says that it failed, this rank says so.
void check(int code, int rank, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunFault(rank, fmt::format("rank {}: {} failed: {}", rank, what,
                                   std::string_view(text, static_cast<std::size_t>(length))));
}

// Calls `done` until it is true, soon at first and then every 50 us, since ranks may share cores.
// False when that took longer than `patience`.
template <class Done>
bool poll(costmodel::Seconds patience, Done done) {
  constexpr int eager = 100;
  constexpr timespec pause{0, 50'000};
  const auto deadline = Clock::now() + std::chrono::duration<double>(patience.value);
  for (int tries = 0; !done(); ++tries) {
    if (tries < eager) continue;
    if (Clock::now() > deadline) return false;
    nanosleep(&pause, nullptr);
  }
  return true;
}

// A message goes as segments of this size and a last one that is shorter: MPI sends them at once.
// For longer ones it asks the receiver first, whose answer then waits behind what the receiver
// itself is sending (over TCP, that halves the rate of two ranks that exchange large messages).
constexpr std::size_t segment = 60'000;

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiOptions& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    prctl(PR_SET_TIMERSLACK, 1UL);  // a pause of 50 us is not one of 100
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, int tag, std::span<const std::byte> message) override {
    check_rank(to, "sends to");
    for (bool last = false; !last;) {
      const auto part = message.first(std::min(message.size(), segment));
      message = message.subspan(part.size());
      last = part.size() < segment;
      Sent& sent = sent_.emplace_back(std::vector(part.begin(), part.end()));
      check(MPI_Isend(sent.copy.data(), static_cast<int>(part.size()), MPI_BYTE, to, tag,
                      MPI_COMM_WORLD, &sent.request),
            rank_, "MPI_Isend");
    }
    progress();
  }

  void recv(int from, int tag, std::span<std::byte> message) override {
    check_rank(from, "waits for");
    std::size_t bytes = 0;
    for (bool last = false; !last;) {
      const std::size_t fits = std::min(bytes, message.size());
      const std::size_t size = recv_segment(from, tag, message.subspan(fits));
      bytes += size;
      last = size < segment;
    }
    if (bytes == message.size()) return;
    throw RunFault(from, fmt::format("rank {} sent {} bytes to rank {}, which wants {}: {}", from,
                                     bytes, rank_, message.size(), tag_text(tag)));
  }

  void heed() override {
    MPI_Status status;
    if (!probe(MPI_ANY_SOURCE, given_up_tag(), status)) return;
    throw RunFault(status.MPI_SOURCE,
                   fmt::format("rank {}: rank {} gave the run up", rank_, status.MPI_SOURCE));
  }

  bool progress() override {
    while (!sent_.empty() && completed(sent_.front().request)) sent_.pop_front();
    return !sent_.empty();
  }

  // Where several ranks fail at once, one speaks for all: each gives those below it time to. A word
  // that was just sent takes a while where ranks share cores.
  bool others_gave_up() const {
    MPI_Status status;
    return poll(costmodel::Seconds(0.2 + 0.2 * std::min(rank_, 10)), [&] {
      int there = 0;
      return MPI_Iprobe(MPI_ANY_SOURCE, given_up_tag(), MPI_COMM_WORLD, &there, &status) ==
                 MPI_SUCCESS &&
             there != 0;
    });
  }

  // Says `sentence` for all ranks.
  void give_up(const std::string& sentence) const {
    std::vector<MPI_Request> words(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      MPI_Isend(nullptr, 0, MPI_BYTE, other, given_up_tag(), MPI_COMM_WORLD,
                &words[static_cast<std::size_t>(other)]);
    }
    fmt::print(stderr, "shardplan: {}\n", sentence);
    std::fflush(nullptr);
    poll(costmodel::Seconds(1), [&] {  // who does not hear it is none to wait for
      int done = 0;
      return MPI_Testall(size_, words.data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
             done != 0;
    });
  }

  // All ranks have come to their end and all messages are gone: MPI_Finalize, which has no
  // patience, finds nobody missing.
  void end() {
    for (int distance = 1; distance < size_; distance *= 2) {
      send((rank_ + distance) % size_, end_tag(), {});
      recv((rank_ + size_ - distance) % size_, end_tag(), {});
    }
    if (poll(options_.patience, [&] { return !progress(); })) return;
    throw RunFault(rank_, fmt::format("rank {}: {} messages were not received within {:g} s", rank_,
                                      sent_.size(), options_.patience.value));
  }

 private:
  // `copy` is MPI's until `request` is complete.
  struct Sent {
    explicit Sent(std::vector<std::byte> message) : copy(std::move(message)) {}
    std::vector<std::byte> copy;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  bool completed(MPI_Request& request) const {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), rank_, "MPI_Test");
    return done != 0;
  }

  // Returns how many bytes came; what does not fit `into` is thrown away.
  std::size_t recv_segment(int from, int tag, std::span<std::byte> into) {
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    wait_for(from, tag, [&] {
      int there = 0;
      check(MPI_Improbe(from, tag, MPI_COMM_WORLD, &there, &found, &status), rank_, "MPI_Improbe");
      return there != 0;
    });
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), rank_, "MPI_Get_count");
    const auto size = static_cast<std::size_t>(bytes);
    if (size > into.size()) too_long_.resize(size);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Imrecv(size > into.size() ? too_long_.data() : into.data(), bytes, MPI_BYTE, &found,
                     &request),
          rank_, "MPI_Imrecv");
    wait_for(from, tag, [&] { return completed(request); });
    return size;
  }

  void check_rank(int other, const char* what) const {
    if (other >= 0 && other < size_) return;
    throw RunFault(rank_, fmt::format("rank {} {} rank {}, but the world has {} ranks", rank_, what,
                                      other, size_));
  }

  // Waits until `arrived`. A rank that loses patience asks `from` whether it waits itself. If it
  // does, the fault is not its own, and who waits for the one at fault has as long again to say so.
  template <class Arrived>
  void wait_for(int from, int tag, Arrived arrived) {
    const auto done = [&] {
      progress();
      answer(from, tag);
      return arrived();
    };
    if (poll(options_.patience, done)) return;
    std::byte nothing{};
    MPI_Request question = MPI_REQUEST_NULL;
    check(MPI_Isend(&nothing, 0, MPI_BYTE, from, question_tag(), MPI_COMM_WORLD, &question), rank_,
          "MPI_Isend");
    Waiting other{-1, -1};
    bool arrived_late = false;
    poll(costmodel::Seconds(1), [&] {
      arrived_late = done();
      return arrived_late || answered(from, other);
    });
    MPI_Request_free(&question);
    if (arrived_late || (other.rank >= 0 && poll(options_.patience, done))) return;
    throw RunFault(from,
                   fmt::format("rank {} waited {:g} s for {} from rank {}, which {}", rank_,
                               options_.patience.value, tag_text(tag), from,
                               other.rank < 0 ? "does not answer"
                                              : fmt::format("waits for {} from rank {}",
                                                            tag_text(other.tag), other.rank)));
  }

  struct Waiting {
    int rank, tag;
  };

  bool probe(int from, int tag, MPI_Status& status) const {
    int there = 0;
    check(MPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status), rank_, "MPI_Iprobe");
    return there != 0;
  }

  // Tells who asks that this rank waits too.
  void answer(int from, int tag) {
    MPI_Status status;
    if (!probe(MPI_ANY_SOURCE, question_tag(), status)) return;
    check(MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, question_tag(), MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          rank_, "MPI_Recv");
    const Waiting self{from, tag};
    send(status.MPI_SOURCE, answer_tag(), std::as_bytes(std::span(&self, 1)));
  }

  bool answered(int from, Waiting& other) const {
    MPI_Status status;
    if (!probe(from, answer_tag(), status)) return false;
    check(MPI_Recv(&other, sizeof other, MPI_BYTE, from, answer_tag(), MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          rank_, "MPI_Recv");
    return true;
  }

  const MpiOptions options_;
  std::vector<std::byte> too_long_;
  int rank_ = 0, size_ = 1;
  std::list<Sent> sent_;  // in order
};

[[noreturn]] void abort_run(MpiTransport& transport, const std::string& sentence) {
  if (!transport.others_gave_up()) transport.give_up(sentence);
  MPI_Abort(MPI_COMM_WORLD, 4);
  std::_Exit(4);
}

// What `program` throws, as a sentence that names this rank.
std::string run(MpiTransport& transport, const std::function<void(Transport&)>& program) {
  const int rank = transport.rank();
  try {
    program(transport);
    transport.end();
    return "";
  } catch (const RunFault& fault) {
    return fault.what();
  } catch (const std::bad_alloc&) {
    return fmt::format("rank {}: memory ran out", rank);
  } catch (const std::exception& fault) {
    return fmt::format("rank {}: {}", rank, fault.what());
  } catch (...) {
    return fmt::format("rank {}: failed without saying why", rank);
  }
}

}  // namespace

int run_mpi(const MpiOptions& options, const std::function<void(Transport&)>& program) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    fmt::print(stderr, "shardplan: MPI_Init_thread failed\n");
    return 4;
  }
  MpiTransport transport(options);
  const std::string fault = run(transport, program);
  if (!fault.empty()) {
    if (options.on_fault) options.on_fault(fault);
    abort_run(transport, fault);
  }
  MPI_Finalize();
  return 0;
}

#endif

}  // namespace runtime
