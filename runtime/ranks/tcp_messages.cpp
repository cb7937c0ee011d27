#include "runtime/ranks/tcp_messages.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace runtime {

namespace asio = boost::asio;

std::string message_of(const boost::system::error_code& code) {
  if (code != asio::error::no_descriptors) return code.message();
  return code.message() + " (raise ulimit -n)";
}

// Starts an asynchronous operation on `object` and waits for its end.
template <class Object, class Begin>
TcpWords::Code TcpWords::done(Object& object, Time deadline, Begin begin) {
  std::optional<Code> end;
  begin([&end](const Code& code, auto&&...) { end = code; });
  if (wait(deadline, [&] { return end || disturbed(); }) && end) return *end;
  Code ignored;
  object.close(ignored);
  wait(Time::max(), [&] { return end.has_value(); });
  return asio::error::timed_out;
}

bool TcpWords::wait(Time deadline, const std::function<bool()>& until) {
  io_.restart();
  while (!until())
    if (io_.run_one_until(deadline) == 0) return until();
  return true;
}

TcpWords::Code TcpWords::read(Socket& from, asio::mutable_buffer into, Time deadline) {
  return done(from, deadline, [&](auto then) { asio::async_read(from, into, then); });
}

TcpWords::Code TcpWords::write(Socket& to, asio::const_buffer bytes) {
  return done(to, std::chrono::steady_clock::now() + moment,
              [&](auto then) { asio::async_write(to, bytes, then); });
}

TcpWords::Code TcpWords::connect(Socket& socket, const std::vector<asio::ip::address>& hosts,
                                 int port, Time deadline) {
  std::vector<asio::ip::tcp::endpoint> ends;
  for (const auto& host : hosts) ends.emplace_back(host, static_cast<unsigned short>(port));
  return done(socket, std::min(deadline, std::chrono::steady_clock::now() + moment),
              [&](auto then) { asio::async_connect(socket, ends, then); });
}

bool TcpWords::say(Socket& to, TcpWord word, const std::string& text) {
  const std::uint64_t size = text.size();
  return !write(to, asio::buffer(&word, 1)) && !write(to, asio::buffer(&size, sizeof size)) &&
         !write(to, asio::buffer(text));
}

std::optional<std::string> TcpWords::hear(Socket& from, TcpWord& word, Time deadline) {
  std::uint64_t size = 0;
  if (read(from, asio::buffer(&word, 1), deadline) ||
      read(from, asio::buffer(&size, sizeof size), std::chrono::steady_clock::now() + moment))
    return std::nullopt;
  return text(from, size);
}

std::optional<std::string> TcpWords::text_behind(const Coming& word, Socket& from) {
  return text(from, word.size);
}

std::optional<std::string> TcpWords::text(Socket& from, std::uint64_t size) {
  if (size > (1U << 24U)) return std::nullopt;
  std::string text(size, ' ');
  if (read(from, asio::buffer(text), std::chrono::steady_clock::now() + moment))
    return std::nullopt;
  return text;
}

// Reads the complete text: closing a connection with unread data discards what was sent last.
std::shared_ptr<TcpWords::Coming> TcpWords::next(Socket& from) {
  auto coming = std::make_shared<Coming>();
  const std::array<asio::mutable_buffer, 2> parts{asio::buffer(&coming->word, 1),
                                                  asio::buffer(&coming->size, sizeof coming->size)};
  asio::async_read(from, parts, [coming](const Code& code, std::size_t) { coming->end = code; });
  return coming;
}

}  // namespace runtime
