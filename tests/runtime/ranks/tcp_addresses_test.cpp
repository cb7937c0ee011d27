// Where ranks meet, and where they may not.
#include "runtime/ranks/tcp_addresses.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tcp_addresses_test {

using boost::asio::ip::make_address;
using runtime::Meeting;

namespace {

using Addresses = std::vector<boost::asio::ip::address>;

// Of rank 1 of 4.
Meeting meeting(const std::string& host, int ranks_here = 0, const std::string& token = "") {
  return {.rank = 1,
          .world = 4,
          .host = host,
          .ports = {29500},
          .run = "a run",
          .token = token,
          .ranks_here = ranks_here};
}

std::string at(const Meeting& meeting) {
  boost::system::error_code error;
  std::string text;
  for (const auto& address : runtime::addresses_of(meeting, error))
    text += (text.empty() ? "" : " ") + address.to_string();
  return error ? error.message() : text;
}

}  // namespace

TEST_CASE("ranks of one host meet at a loopback address, whatever the host is called") {
  CHECK(at(meeting("localhost")) == "127.0.0.1");
  CHECK(at(meeting("127.0.0.5")) == "127.0.0.5");
  CHECK(at(meeting("::1")) == "::1");
  CHECK(at(meeting("203.0.113.1", 4)) == "127.0.0.1");
  CHECK(at(meeting("no host has blanks", 4)) == "127.0.0.1");
}

TEST_CASE("ranks of several hosts meet at the address that they were told") {
  CHECK(at(meeting("203.0.113.1")) == "203.0.113.1");
  CHECK(at(meeting("203.0.113.1", 2)) == "203.0.113.1");
  CHECK(at(meeting("no host has blanks")).starts_with("Host not found"));
  CHECK(at(meeting("127.no host has blanks")).starts_with("Host not found"));
}

TEST_CASE("what other hosts reach takes a token") {
  const Addresses outside{make_address("203.0.113.1")},
      both{make_address("127.0.0.1"), make_address("203.0.113.1")};
  CHECK(refusal_of(meeting("203.0.113.1"), outside) ==
        "rank 1 has no SHARDPLAN_TOKEN, and other hosts reach MASTER_ADDR 203.0.113.1: give all "
        "ranks the same token, such as openssl rand -hex 16 prints");
  CHECK(refusal_of(meeting("node1"), outside)
            .starts_with("rank 1 has no SHARDPLAN_TOKEN, and other hosts reach MASTER_ADDR node1 "
                         "(203.0.113.1): "));
  CHECK_FALSE(refusal_of(meeting("node1"), both).empty());
  CHECK(refusal_of(meeting("node1", 0, "a token"), outside).empty());
  CHECK(refusal_of(meeting("localhost"), {make_address("127.0.0.1")}).empty());
  CHECK(refusal_of(meeting("node1"), {}).empty());
}

TEST_CASE("a name that is a loopback address on its host is of no use to others") {
  const Addresses inside{make_address("127.0.1.1")};
  CHECK(refusal_of(meeting("node1", 3), inside) ==
        "MASTER_ADDR node1 (127.0.1.1) is a loopback address on the host of rank 1, and 1 of the 4 "
        "ranks are on other hosts, which do not reach it: give MASTER_ADDR as an address that all "
        "reach");
  CHECK(refusal_of(meeting("node1"), inside).empty());
  CHECK(refusal_of(meeting("node1", 4), inside).empty());
  CHECK(refusal_of(meeting("127.0.1.1", 3), inside).empty());  // two agents of torchrun, one host
}

}  // namespace tcp_addresses_test
