#include "runtime/ranks/mpi_transport.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#ifdef SHARDPLAN_WITH_MPI
#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/console.hpp"
#include "runtime/backend/tags.hpp"
#endif

namespace runtime {

using namespace costmodel;

#ifndef SHARDPLAN_WITH_MPI

std::string mpi_missing() {
  return "this build has no MPI: configure it where CMake finds one (Debian: libopenmpi-dev)";
}

int run_mpi(const MpiOptions&, const std::function<void(Transport&)>&) {
  print_message("shardplan: " + mpi_missing());
  return 4;
}

#else

std::string mpi_missing() { return ""; }

namespace {

using Clock = std::chrono::steady_clock;

// Throws RunFault, which names this rank, on an error of MPI.
void check(int code, int rank, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunFault(rank, fmt::format("rank {}: {} failed: {}", rank, what,
                                   std::string_view(text, static_cast<std::size_t>(length))));
}

// Polls `done` until it is true, eagerly at first and then every 50 us, because ranks may share
// cores. False on a timeout.
template <class Done>
bool poll(Seconds patience, Done done) {
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

// A message is sent as segments of this size and a shorter last one, which MPI sends eagerly. For
// longer ones it asks the receiver first (rendezvous), and the reply queues behind what the
// receiver itself is sending (over TCP, that halves the rate of two ranks that exchange large
// messages).
constexpr std::size_t segment = 60'000;

// The message a rank waits for; rank -1: none.
struct Waiting {
  int rank = -1, tag = -1;
};

// The state that the two transports of a rank share: the first is for the thread that called
// MPI_Init, the second for one other thread. Each has a communicator of its own; questions go over
// the first, and answers over the asker's.
struct Lanes {
  bool several = false;  // MPI_THREAD_MULTIPLE
  std::array<MPI_Comm, 2> communicators{MPI_COMM_WORLD, MPI_COMM_NULL};
  std::array<std::atomic<Waiting>, 2> waits{};
};

class MpiTransport : public Transport {
 public:
  MpiTransport(const MpiOptions& options, Lanes& lanes, int lane)
      : options_(options), lanes_(lanes), lane_(lane) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    prctl(PR_SET_TIMERSLACK, 1UL);  // otherwise a pause of 50 us takes 100
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Transport* beside() override {
    if (!lanes_.several || lane_ != 0) return nullptr;
    if (beside_ == nullptr) {
      make_communicator(lanes_.communicators[1]);
      beside_ = std::make_unique<MpiTransport>(options_, lanes_, 1);
    }
    return beside_.get();
  }

  void stop() override { stopped_ = true; }

  void send(int to, int tag, std::span<const std::byte> message) override {
    check_rank(to, "sends to");
    for (bool last = false; !last;) {
      const auto part = message.first(std::min(message.size(), segment));
      message = message.subspan(part.size());
      last = part.size() < segment;
      send_segment(to, tag, part, communicator());
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
    int there = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, given_up_tag(), MPI_COMM_WORLD, &there, &status), rank_,
          "MPI_Iprobe");
    if (there == 0) return;
    throw RunFault(status.MPI_SOURCE,
                   fmt::format("rank {}: rank {} gave the run up", rank_, status.MPI_SOURCE));
  }

  bool progress() override {
    while (!sent_.empty() && completed(sent_.front().request)) sent_.pop_front();
    return !sent_.empty();
  }

  // When several ranks fail at once, one reports for all: each gives lower ranks time to. A message
  // takes a while when ranks share cores.
  bool others_gave_up() const {
    MPI_Status status;
    return poll(Seconds(0.2 + 0.2 * std::min(rank_, 10)), [&] {
      int there = 0;
      return MPI_Iprobe(MPI_ANY_SOURCE, given_up_tag(), MPI_COMM_WORLD, &there, &status) ==
                 MPI_SUCCESS &&
             there != 0;
    });
  }

  // Reports `sentence` for all ranks.
  void give_up(const std::string& sentence) const {
    std::vector<MPI_Request> words(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      MPI_Isend(nullptr, 0, MPI_BYTE, other, given_up_tag(), MPI_COMM_WORLD,
                &words[static_cast<std::size_t>(other)]);
    }
    print_message("shardplan: " + sentence);
    std::fflush(nullptr);
    poll(Seconds(1), [&] {  // not for ranks that do not receive it
      int done = 0;
      return MPI_Testall(size_, words.data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
             done != 0;
    });
  }

  // Waits until all ranks have ended and all messages are delivered, so that MPI_Finalize, which
  // has no timeout, does not block.
  void end() {
    for (int distance = 1; distance < size_; distance *= 2) {
      send((rank_ + distance) % size_, end_tag(), {});
      recv((rank_ + size_ - distance) % size_, end_tag(), {});
    }
    const auto gone = [&] { return !progress() && (beside_ == nullptr || !beside_->progress()); };
    if (poll(options_.patience, gone)) return;
    const std::size_t left = sent_.size() + (beside_ == nullptr ? 0 : beside_->sent_.size());
    throw RunFault(rank_, fmt::format("rank {}: {} messages were not received within {:g} s", rank_,
                                      left, options_.patience.value));
  }

 private:
  MPI_Comm communicator() const { return lanes_.communicators[static_cast<std::size_t>(lane_)]; }

  void make_communicator(MPI_Comm& made) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request), rank_, "MPI_Comm_idup");
    if (poll(options_.patience, [&] { return completed(request); })) return;
    throw RunFault(rank_,
                   fmt::format("rank {} waited {:g} s for all ranks to make the communicator of "
                               "reductions beside the backward",
                               rank_, options_.patience.value));
  }

  void send_segment(int to, int tag, std::span<const std::byte> part, MPI_Comm in) {
    Sent& sent = sent_.emplace_back(std::vector(part.begin(), part.end()));
    check(MPI_Isend(sent.copy.data(), static_cast<int>(part.size()), MPI_BYTE, to, tag, in,
                    &sent.request),
          rank_, "MPI_Isend");
  }

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

  // Returns the number of bytes received; discards what does not fit `into`.
  std::size_t recv_segment(int from, int tag, std::span<std::byte> into) {
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    wait_for(from, tag, [&] { return take(from, tag, communicator(), found, status); });
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

  // Waits until `arrived`. On a timeout it asks `from` whether that rank waits itself. If so,
  // `from` is not at fault, and the rank that waits for the culprit gets another timeout to report
  // it.
  template <class Arrived>
  void wait_for(int from, int tag, Arrived arrived) {
    const auto done = [&] {
      if (stopped_) throw RunFault(rank_, fmt::format("rank {} was stopped", rank_));
      progress();
      answer();
      return arrived();
    };
    auto& wait = lanes_.waits[static_cast<std::size_t>(lane_)];
    wait = Waiting{from, tag};
    const bool in_time = poll(options_.patience, done);
    if (!in_time) ask(from, tag, done);
    wait = Waiting{};
  }

  template <class Done>
  void ask(int from, int tag, Done done) {
    send_segment(from, question_tag(), std::as_bytes(std::span(&lane_, 1)), MPI_COMM_WORLD);
    Waiting other;
    bool arrived_late = false;
    poll(Seconds(1), [&] {
      arrived_late = done();
      return arrived_late || answered(from, other);
    });
    if (arrived_late || (other.rank >= 0 && poll(options_.patience, done))) return;
    throw RunFault(from,
                   fmt::format("rank {} waited {:g} s for {} from rank {}, which {}", rank_,
                               options_.patience.value, tag_text(tag), from,
                               other.rank < 0 ? "does not answer"
                                              : fmt::format("waits for {} from rank {}",
                                                            tag_text(other.tag), other.rank)));
  }

  // Claims a pending message before another thread can; false when there is none.
  bool take(int from, int tag, MPI_Comm in, MPI_Message& found, MPI_Status& status) const {
    int there = 0;
    check(MPI_Improbe(from, tag, in, &there, &found, &status), rank_, "MPI_Improbe");
    return there != 0;
  }

  template <class T>
  bool take(int from, int tag, MPI_Comm in, T& value, MPI_Status& status) const {
    MPI_Message found = MPI_MESSAGE_NULL;
    if (!take(from, tag, in, found, status)) return false;
    check(MPI_Mrecv(&value, sizeof value, MPI_BYTE, &found, &status), rank_, "MPI_Mrecv");
    return true;
  }

  // Answers a question with what this rank waits for in the asker's lane or, when it does not wait
  // in that lane, in the other.
  void answer() {
    MPI_Status status;
    int lane = 0;
    if (!take(MPI_ANY_SOURCE, question_tag(), MPI_COMM_WORLD, lane, status)) return;
    const auto asked = static_cast<std::size_t>(lane);
    Waiting self = lanes_.waits[asked];
    if (self.rank < 0) self = lanes_.waits[1 - asked];
    send_segment(status.MPI_SOURCE, answer_tag(), std::as_bytes(std::span(&self, 1)),
                 lanes_.communicators[asked]);
  }

  bool answered(int from, Waiting& other) const {
    MPI_Status status;
    return take(from, answer_tag(), communicator(), other, status);
  }

  const MpiOptions options_;
  Lanes& lanes_;
  const int lane_;
  std::unique_ptr<MpiTransport> beside_;
  std::atomic<bool> stopped_ = false;
  std::vector<std::byte> too_long_;
  int rank_ = 0, size_ = 1;
  std::list<Sent> sent_;  // in order
};

[[noreturn]] void abort_run(MpiTransport& transport, const std::string& sentence) {
  if (!transport.others_gave_up()) transport.give_up(sentence);
  MPI_Abort(MPI_COMM_WORLD, 4);
  std::_Exit(4);
}

// The exception of `program` as a sentence that names this rank.
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
  const int wanted = options.beside ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, wanted, &provided) != MPI_SUCCESS) {
    print_message("shardplan: MPI_Init_thread failed");
    return 4;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // duplicates inherit it
  Lanes lanes{.several = options.beside && provided >= MPI_THREAD_MULTIPLE};
  MpiTransport transport(options, lanes, 0);
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
