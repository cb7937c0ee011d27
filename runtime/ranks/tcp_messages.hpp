// Short words over TCP connections that are being made, each waited for until a moment: what
// runtime/ranks/tcp_rendezvous.hpp speaks, on one thread.
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

// What is said, with a text behind it.
enum class TcpWord : char { welcome = 'w', table = 't', ready = 'r', begin = 'b', fault = 'f' };

// What an error says, and where files ran out the remedy.
std::string message_of(const boost::system::error_code& code);

class TcpWords {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Acceptor = boost::asio::ip::tcp::acceptor;
  using Code = boost::system::error_code;
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds moment{2};  // how long one short message may take

  // A word that will come, or the end of its connection; how long the text behind it is.
  struct Coming {
    TcpWord word{};
    std::uint64_t size = 0;
    std::optional<Code> end;
    bool is(TcpWord wanted) const { return end && !*end && word == wanted; }
  };

  explicit TcpWords(boost::asio::io_context& io) : io_(io) {}

  // Listens at the first of the addresses that can be, and returns what hindered it at the last.
  // One of IPv6 hears IPv4 too.
  static Code listen(Acceptor& acceptor, const std::vector<boost::asio::ip::address>& addresses,
                     int port);

  // Each returns what hindered it: timed_out where it was not done until the deadline, or where
  // what is watched ended; its socket is then closed.
  Code read(Socket& from, boost::asio::mutable_buffer into, Time deadline);
  Code write(Socket& to, boost::asio::const_buffer bytes);
  Code accept(Acceptor& at, Socket& socket, Time deadline);
  Code connect(Socket& socket, const std::vector<boost::asio::ip::address>& hosts, int port,
               Time deadline);

  // False where it could not be said.
  bool say(Socket& to, TcpWord word, const std::string& text);
  // The text behind a word; nothing where none came in time.
  std::optional<std::string> hear(Socket& from, TcpWord& word, Time deadline);
  std::optional<std::string> text_behind(const Coming& word, Socket& from);

  // Begins to wait for a word, beside all else. Nobody else may read from the socket meanwhile.
  std::shared_ptr<Coming> next(Socket& from);
  // False where the deadline was over before.
  bool wait(Time deadline, const std::function<bool()>& until);
  // Whatever waits ends when this has; null: nothing is watched.
  void watch(std::shared_ptr<const Coming> watched) { watched_ = std::move(watched); }

 private:
  template <class Object, class Begin>
  Code done(Object& object, Time deadline, Begin begin);
  std::optional<std::string> text(Socket& from, std::uint64_t size);

  boost::asio::io_context& io_;
  std::shared_ptr<const Coming> watched_;
};

}  // namespace runtime
