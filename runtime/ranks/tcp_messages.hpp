// Short messages with deadlines over TCP connections that are being set up, single-threaded: the
// protocol layer of runtime/ranks/tcp_rendezvous.hpp.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace runtime {

// The kinds of message; each is followed by a text.
enum class TcpWord : char { table = 't', ready = 'r', begin = 'b', fault = 'f' };

// The error's message; with a remedy when the process is out of file descriptors.
std::string message_of(const boost::system::error_code& code);

class TcpWords {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Code = boost::system::error_code;
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds moment{2};  // timeout of one short message

  // A pending message's kind or the end of its connection, and the length of its text.
  struct Coming {
    TcpWord word{};
    std::uint64_t size = 0;
    std::optional<Code> end;
    bool is(TcpWord wanted) const { return end && !*end && word == wanted; }
  };

  explicit TcpWords(boost::asio::io_context& io) : io_(io) {}

  // Each returns an error code: timed_out when the deadline passed or the watched connection ended;
  // the socket is then closed.
  Code read(Socket& from, boost::asio::mutable_buffer into, Time deadline);
  Code write(Socket& to, boost::asio::const_buffer bytes);
  Code connect(Socket& socket, const std::vector<boost::asio::ip::address>& hosts, int port,
               Time deadline);

  // False when it could not be sent.
  bool say(Socket& to, TcpWord word, const std::string& text);
  // Receives a message: its kind and its text; nothing when none arrived in time.
  std::optional<std::string> hear(Socket& from, TcpWord& word, Time deadline);
  std::optional<std::string> text_behind(const Coming& word, Socket& from);

  // Starts an asynchronous wait for a message. Nothing else may read from the socket until it
  // arrives.
  std::shared_ptr<Coming> next(Socket& from);
  // Runs until `until` is true; false when the deadline passed first.
  bool wait(Time deadline, const std::function<bool()>& until);
  // All waits end when `watched` has a message or an error; null: watch nothing.
  void watch(std::shared_ptr<const Coming> watched) { watched_ = std::move(watched); }
  bool disturbed() const { return watched_ && watched_->end; }

 private:
  template <class Object, class Begin>
  Code done(Object& object, Time deadline, Begin begin);
  std::optional<std::string> text(Socket& from, std::uint64_t size);

  boost::asio::io_context& io_;
  std::shared_ptr<const Coming> watched_;
};

}  // namespace runtime
