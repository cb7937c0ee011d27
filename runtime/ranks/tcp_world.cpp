#include "runtime/ranks/tcp_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <exception>

#include "runtime/backend/tags.hpp"

namespace runtime {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(seconds, 1e9)));
}

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
T value_of(const TcpWorld::Bytes& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

}  // namespace

TcpWorld::TcpWorld(const Meeting& meeting, costmodel::Seconds patience, OnCause on_cause)
    : rank_(meeting.rank),
      patience_(patience),
      on_cause_(std::move(on_cause)),
      work_(io_.get_executor()) {
  for (tcp::socket& socket : meet(io_, meeting, patience)) peers_.emplace_back(std::move(socket));
  io_.restart();
  for (int other = 0; other < size(); ++other)
    if (other != rank_) read_header(other);
  thread_ = std::thread([this] { work(); });
}

TcpWorld::~TcpWorld() {
  io_.stop();
  thread_.join();
}

// A failure to receive ends the run, but the others are still informed.
void TcpWorld::work() {
  for (bool ended = false; !ended;) {
    try {
      io_.run();
      ended = true;
    } catch (const std::exception& fault) {  // out of memory for a message
      const std::scoped_lock lock(mutex_);
      if (!cause_)
        end_by(RunFault(rank_, fmt::format("rank {}: receiving: {}", rank_, fault.what())));
      changed_.notify_all();
    }
  }
}

void TcpWorld::heed() {
  const std::scoped_lock lock(mutex_);
  throw_if_given_up();
}

void TcpWorld::send(int to, int tag, std::span<const std::byte> message) {
  heed();
  if (to == rank_) return arrived(to, tag, {message.begin(), message.end()});
  give(to, tag, message);
}

TcpWorld::Bytes TcpWorld::recv(int from, int tag, std::size_t lane, const bool& stopped) {
  Lock lock(mutex_);
  waits_[lane] = {from, tag};
  std::optional<Bytes> message = wait_for(lock, from, tag, stopped, patience_.value);
  if (!message) message = ask(lock, from, tag, lane, stopped);
  waits_[lane] = {};
  return *std::move(message);
}

void TcpWorld::stop(bool& stopped) {
  const std::scoped_lock lock(mutex_);
  stopped = true;
  changed_.notify_all();
}

bool TcpWorld::part() {
  for (int other = 0; other < size(); ++other)
    if (other != rank_) give(other, farewell_tag(), {});
  Lock lock(mutex_);
  return changed_.wait_until(lock, after(patience_.value), [&] {
    return cause_ || every_other([](const Peer& p) { return p.unsent == 0 && p.farewell; });
  });
}

void TcpWorld::give_up(const std::string& sentence) {
  Lock lock(mutex_);
  ending_ = true;
  const std::string first = heard_.value_or(sentence);
  lock.unlock();
  for (int other = 0; other < size(); ++other) {
    if (other == rank_) continue;
    give(other, given_up_tag(), std::as_bytes(std::span(first)));
    end_with(other);
  }
  lock.lock();
  changed_.wait_until(lock, after(1),
                      [&] { return every_other([](const Peer& p) { return p.closed; }); });
}

bool TcpWorld::every_other(const std::function<bool(const Peer&)>& test) const {
  for (int other = 0; other < size(); ++other)
    if (other != rank_ && !test(peers_[static_cast<std::size_t>(other)])) return false;
  return true;
}

void TcpWorld::throw_if_given_up() const {
  if (cause_) throw RunFault(*cause_);
}

std::optional<TcpWorld::Bytes> TcpWorld::taken(int from, int tag) {
  const auto box = mail_.find({from, tag});
  if (box == mail_.end()) return std::nullopt;
  std::optional<Bytes> message(std::move(box->second.front()));
  box->second.pop_front();
  if (box->second.empty()) mail_.erase(box);
  return message;
}

// Returns nothing on a timeout or once `until` is true.
std::optional<TcpWorld::Bytes> TcpWorld::wait_for(Lock& lock, int from, int tag,
                                                  const bool& stopped, double seconds,
                                                  const std::function<bool()>& until) {
  const auto deadline = after(seconds);
  for (bool patient = true;;) {
    if (auto message = taken(from, tag)) return message;
    throw_if_given_up();
    if (stopped) throw RunFault(rank_, fmt::format("rank {} was stopped", rank_));
    if (peer(from).farewell) {
      throw RunFault(from, fmt::format("rank {} ended without sending {} to rank {}", from,
                                       tag_text(tag), rank_));
    }
    if (!patient || (until && until())) return std::nullopt;
    patient = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
  }
}

// On a timeout a rank asks `from` whether that rank waits itself. If so, `from` is not at fault,
// and the rank that waits for the culprit gets another timeout to report it.
TcpWorld::Bytes TcpWorld::ask(Lock& lock, int from, int tag, std::size_t lane,
                              const bool& stopped) {
  std::string what = "does not answer";
  std::optional<Waiting>& other = peer(from).answer;
  other.reset();
  lock.unlock();
  if (from != rank_) give(from, question_tag(), bytes_of_value(lane));
  lock.lock();
  if (auto late = wait_for(lock, from, tag, stopped, 1, [&] { return other.has_value(); }))
    return *std::move(late);
  if (other && other->rank < 0) what = "waits for nobody";
  if (other && other->rank >= 0) {
    what = fmt::format("waits for {} from rank {}", tag_text(other->tag), other->rank);
    if (auto late = wait_for(lock, from, tag, stopped, patience_.value)) return *std::move(late);
  }
  throw RunFault(from, fmt::format("rank {} waited {:g} s for {} from rank {}, which {}", rank_,
                                   patience_.value, tag_text(tag), from, what));
}

// Passes a message to the connection's thread.
void TcpWorld::give(int to, int tag, std::span<const std::byte> message) {
  const Header header{tag, message.size()};
  Bytes all(sizeof header + message.size());
  std::memcpy(all.data(), &header, sizeof header);
  if (!message.empty()) std::memcpy(all.data() + sizeof header, message.data(), message.size());
  {
    const std::scoped_lock lock(mutex_);
    ++peer(to).unsent;
  }
  asio::post(io_, [this, to, all = std::move(all)]() mutable {
    peer(to).going.push_back(std::move(all));
    if (peer(to).going.size() == 1) write(to);
  });
}

// Closes the sending side after all queued messages, so that the other end reads end-of-file.
void TcpWorld::end_with(int to) {
  asio::post(io_, [this, to] {
    peer(to).last = true;
    if (peer(to).going.empty()) write(to);
  });
}

// Ignores errors: the reading side sees them too, after everything that was received before.
void TcpWorld::write(int to) {
  Peer& p = peer(to);
  if (p.going.empty()) {
    error_code ignored;
    if (p.last) p.socket.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  asio::async_write(p.socket, asio::buffer(p.going.front()),
                    [this, to](const error_code& code, std::size_t) {
                      if (code) return;
                      peer(to).going.pop_front();
                      write(to);
                      const std::scoped_lock lock(mutex_);
                      if (--peer(to).unsent == 0) changed_.notify_all();
                    });
}

void TcpWorld::read_header(int from) {
  Peer& p = peer(from);
  asio::async_read(p.socket, asio::buffer(&p.header, sizeof p.header),
                   [this, from](const error_code& code, std::size_t) {
                     code ? lost(from) : read_message(from);
                   });
}

void TcpWorld::read_message(int from) {
  Peer& p = peer(from);
  p.coming.resize(p.header.size);
  asio::async_read(p.socket, asio::buffer(p.coming),
                   [this, from](const error_code& code, std::size_t) {
                     if (code) return lost(from);
                     Peer& its = peer(from);
                     arrived(from, static_cast<int>(its.header.tag), std::exchange(its.coming, {}));
                     read_header(from);
                   });
}

void TcpWorld::lost(int other) {
  const std::scoped_lock lock(mutex_);
  Peer& p = peer(other);
  p.closed = true;
  if (!p.farewell && !ending_ && !cause_) {
    end_by(RunFault(other,
                    fmt::format("rank {} is gone: its connection to rank {} ended", other, rank_)));
  }
  changed_.notify_all();
}

void TcpWorld::end_by(const RunFault& cause) {
  cause_ = cause;
  if (on_cause_) on_cause_(cause.what());
}

void TcpWorld::arrived(int from, int tag, Bytes message) {
  if (tag == question_tag()) return answer(from, value_of<std::size_t>(message));
  const std::scoped_lock lock(mutex_);
  if (tag == given_up_tag()) {
    heard(from, {reinterpret_cast<const char*>(message.data()), message.size()});
  } else if (tag == answer_tag()) {
    peer(from).answer = value_of<Waiting>(message);
  } else if (tag == farewell_tag()) {
    peer(from).farewell = true;
  } else {
    mail_[{from, tag}].push_back(std::move(message));
  }
  changed_.notify_all();
}

void TcpWorld::heard(int from, std::string_view sentence) {
  if (cause_) return;
  heard_ = sentence;
  end_by(RunFault(from, fmt::format("the run was given up: {}", sentence)));
}

// Answers a question with what this rank waits for in the asker's lane or, when it does not wait in
// that lane, in the other.
void TcpWorld::answer(int to, std::size_t lane) {
  Waiting own;
  {
    const std::scoped_lock lock(mutex_);
    own = waits_[lane % waits_.size()];
    if (own.rank < 0) own = waits_[(lane + 1) % waits_.size()];
  }
  give(to, answer_tag(), bytes_of_value(own));
}

}  // namespace runtime
