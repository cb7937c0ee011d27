#include "runtime/ranks/thread_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "runtime/backend/tags.hpp"

namespace runtime {

namespace {

constexpr double longest = 1e9;  // seconds that the clock can represent

}  // namespace

// One lock for all mailboxes: held while a pointer moves, never during a copy.
class ThreadWorld::State {
 public:
  using Message = std::vector<std::byte>;
  struct Envelope {
    int to, from, tag;
    auto operator<=>(const Envelope&) const = default;
  };

  State(int size, const ThreadOptions& options)
      : size_(size), patience_(options.patience), finished_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }

  void send(const Envelope& to, Message message) {
    const std::scoped_lock lock(mutex_);
    throw_if_given_up();
    mail_[to].push_back(std::move(message));
    for (Waiter* waiter : waiters_)
      if (waiter->wanted == to) waiter->bell.notify_one();
  }

  // Waits until the message arrives or stop() sets `stopped`.
  Message recv(const Envelope& wanted, const bool& stopped) {
    std::unique_lock lock(mutex_);
    Waiter waiter{wanted, {}};
    const Registered registered(waiters_, &waiter);
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                              std::chrono::duration<double>(std::min(patience_.value, longest)));
    bool patient = true;
    while (true) {
      throw_if_given_up();
      if (stopped) throw RunFault(wanted.to, fmt::format("rank {} was stopped", wanted.to));
      if (auto message = take(wanted)) return *std::move(message);
      if (finished_[static_cast<std::size_t>(wanted.from)])
        give_up_and_throw(never_sent(wanted), wanted.to);
      if (!patient) give_up_and_throw(waited_too_long(wanted), wanted.to);
      patient = waiter.bell.wait_until(lock, deadline) == std::cv_status::no_timeout;
    }
  }

  void heed() {
    const std::scoped_lock lock(mutex_);
    throw_if_given_up();
  }

  void stop(bool& stopped) {
    const std::scoped_lock lock(mutex_);
    stopped = true;
    wake_all();
  }

  void give_up(const RunFault& cause, int by) {
    const std::scoped_lock lock(mutex_);
    if (!cause_ || (by >= 0 && by == impatient_)) cause_ = cause;
    wake_all();
  }

  std::optional<RunFault> cause() const {
    const std::scoped_lock lock(mutex_);
    return cause_;
  }

  void finished(int rank) {
    const std::scoped_lock lock(mutex_);
    finished_[static_cast<std::size_t>(rank)] = true;
    wake_all();
  }

 private:
  struct Waiter {
    Envelope wanted;
    std::condition_variable bell;
  };

  // Keeps the rank in the list while it is inside recv, however recv ends.
  class Registered {
   public:
    Registered(std::vector<Waiter*>& list, Waiter* waiter) : list_(list), waiter_(waiter) {
      list_.push_back(waiter_);
    }
    ~Registered() { std::erase(list_, waiter_); }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

   private:
    std::vector<Waiter*>& list_;
    Waiter* waiter_;
  };

  void wake_all() {
    for (Waiter* waiter : waiters_) waiter->bell.notify_one();
  }

  void throw_if_given_up() const {
    if (cause_)
      throw RunFault(cause_->rank(), std::string("the run was given up: ") + cause_->what());
  }

  // Called under the lock, before another rank with the same timeout can look and not find this one
  // among the waiting.
  [[noreturn]] void give_up_and_throw(const RunFault& cause, int by) {
    cause_ = cause;
    impatient_ = by;
    wake_all();
    throw RunFault(cause);
  }

  std::optional<Message> take(const Envelope& wanted) {
    const auto box = mail_.find(wanted);
    if (box == mail_.end()) return std::nullopt;
    std::optional<Message> message(std::move(box->second.front()));
    box->second.pop_front();
    if (box->second.empty()) mail_.erase(box);
    return message;
  }

  static RunFault never_sent(const Envelope& wanted) {
    return {wanted.from, fmt::format("rank {} ended without sending {} to rank {}", wanted.from,
                                     tag_text(wanted.tag), wanted.to)};
  }

  const Waiter* waiter_of(int rank) const {
    const auto at = std::ranges::find_if(waiters_, [&](const Waiter* w) {
      return w->wanted.to == rank && mail_.find(w->wanted) == mail_.end();
    });
    return at == waiters_.end() ? nullptr : *at;
  }

  // The chain of waits, from the rank that timed out to the one that keeps the others waiting.
  RunFault waited_too_long(const Envelope& wanted) const {
    std::string text = fmt::format("rank {} waited {:g} s for {} from rank {}", wanted.to,
                                   patience_.value, tag_text(wanted.tag), wanted.from);
    int rank = wanted.from;
    std::vector<int> seen{wanted.to};
    while (std::ranges::find(seen, rank) == seen.end()) {
      seen.push_back(rank);
      const Waiter* const waiter = waiter_of(rank);
      if (waiter == nullptr) return {rank, text + fmt::format("; rank {} waits for nobody", rank)};
      text += fmt::format("; rank {} waits for {} from rank {}", rank, tag_text(waiter->wanted.tag),
                          waiter->wanted.from);
      rank = waiter->wanted.from;
    }
    return {rank, text + "; they wait for one another"};
  }

  const int size_;
  const costmodel::Seconds patience_;
  mutable std::mutex mutex_;
  std::map<Envelope, std::deque<Message>> mail_;
  std::vector<Waiter*> waiters_;
  std::vector<bool> finished_;
  std::optional<RunFault> cause_;
  int impatient_ = -1;  // the rank whose timeout is the cause, and which may add detail
};

class ThreadWorld::Rank : public Transport {
 public:
  Rank(State& state, int rank) : state_(state), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return state_.size(); }
  Transport* beside() override {
    if (!beside_) beside_ = std::make_unique<Rank>(state_, rank_);
    return beside_.get();
  }
  void stop() override { state_.stop(stopped_); }

  void heed() override { state_.heed(); }

  void send(int to, int tag, std::span<const std::byte> message) override {
    check(to, "sends to");
    state_.send({to, rank_, tag}, {message.begin(), message.end()});
  }

  void recv(int from, int tag, std::span<std::byte> message) override {
    check(from, "waits for");
    const auto came = state_.recv({rank_, from, tag}, stopped_);
    if (came.size() != message.size()) {
      throw RunFault(from, fmt::format("rank {} sent {} bytes to rank {}, which wants {}: {}", from,
                                       came.size(), rank_, message.size(), tag_text(tag)));
    }
    if (!came.empty()) std::memcpy(message.data(), came.data(), came.size());
  }

 private:
  void check(int other, const char* what) const {
    if (other >= 0 && other < size()) return;
    throw RunFault(rank_, fmt::format("rank {} {} rank {}, but the world has {} ranks", rank_, what,
                                      other, size()));
  }

  State& state_;
  const int rank_;
  bool stopped_ = false;  // the state's lock guards it
  std::unique_ptr<Rank> beside_;
};

ThreadWorld::ThreadWorld(int size, const ThreadOptions& options) {
  if (size < 1) throw RunFault(0, fmt::format("a world of {} ranks cannot be", size));
  state_ = std::make_unique<State>(size, options);
  for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(*state_, rank));
}

ThreadWorld::~ThreadWorld() = default;

Transport& ThreadWorld::of(int rank) { return *ranks_.at(static_cast<std::size_t>(rank)); }
void ThreadWorld::give_up(const RunFault& cause, int by) { state_->give_up(cause, by); }
std::optional<RunFault> ThreadWorld::cause() const { return state_->cause(); }
void ThreadWorld::finished(int rank) { state_->finished(rank); }

namespace {

void run_rank(ThreadWorld& world, int rank, const std::function<void(Transport&)>& program) {
  try {
    program(world.of(rank));
  } catch (const RunFault& fault) {
    world.give_up(fault, rank);
  } catch (const std::bad_alloc&) {
    world.give_up({rank, fmt::format("rank {}: memory ran out", rank)});
  } catch (const std::exception& fault) {
    world.give_up({rank, fmt::format("rank {}: {}", rank, fault.what())});
  } catch (...) {
    world.give_up({rank, fmt::format("rank {}: failed without saying why", rank)});
  }
  world.finished(rank);
}

}  // namespace

void run_ranks(int ranks, const ThreadOptions& options,
               const std::function<void(Transport&)>& program) {
  ThreadWorld world(ranks, options);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back(run_rank, std::ref(world), rank, std::cref(program));
  } catch (const std::exception& fault) {  // those that run are joined
    const int rank = static_cast<int>(threads.size());
    world.give_up({rank, fmt::format("rank {}: no thread: {}", rank, fault.what())});
  }
  for (std::thread& thread : threads) thread.join();
  if (const auto cause = world.cause()) throw RunFault(*cause);
}

}  // namespace runtime
