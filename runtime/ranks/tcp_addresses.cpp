#include "runtime/ranks/tcp_addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace runtime {

namespace {

namespace asio = boost::asio;
using asio::ip::address;

bool only_this_host_reaches(const address& address) { return address.is_loopback(); }

std::vector<address> resolved(const std::string& host, boost::system::error_code& error) {
  asio::io_context io;
  std::vector<address> all;
  for (const auto& entry : asio::ip::tcp::resolver(io).resolve(host, "", error)) {
    const address one = entry.endpoint().address();
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  if (!std::ranges::all_of(all, only_this_host_reaches)) std::erase_if(all, only_this_host_reaches);
  return all;
}

}  // namespace

std::vector<address> addresses_of(const Meeting& meeting, boost::system::error_code& error) {
  boost::system::error_code no_number;
  const address number = asio::ip::make_address(meeting.host, no_number);
  const bool here = meeting.ranks_here == meeting.world || meeting.host == "localhost";
  error = {};
  if (!no_number && (number.is_loopback() || !here)) return {number};
  if (here) return {asio::ip::address_v4::loopback()};
  return resolved(meeting.host, error);
}

std::string refusal_of(const Meeting& meeting, const std::vector<address>& addresses) {
  if (addresses.empty()) return "";
  const std::string first = addresses.front().to_string();
  const std::string place =
      first == meeting.host ? first : fmt::format("{} ({})", meeting.host, first);
  if (!std::ranges::all_of(addresses, only_this_host_reaches)) {
    if (!meeting.token.empty()) return "";
    return fmt::format(
        "rank {} has no SHARDPLAN_TOKEN, and other hosts reach MASTER_ADDR {}: give all ranks the "
        "same token, such as openssl rand -hex 16 prints",
        meeting.rank, place);
  }
  const bool named = first != meeting.host && meeting.host != "localhost";
  if (!named || meeting.ranks_here == 0 || meeting.ranks_here == meeting.world) return "";
  return fmt::format(
      "MASTER_ADDR {} is a loopback address on the host of rank {}, and {} of the {} ranks are on "
      "other hosts, which do not reach it: give MASTER_ADDR as an address that all reach",
      place, meeting.rank, meeting.world - meeting.ranks_here, meeting.world);
}

}  // namespace runtime
