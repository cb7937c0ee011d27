// The addresses at which rank 0 listens and the others look for it.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <string>
#include <vector>

#include "runtime/ranks/meeting.hpp"

namespace runtime {

// Loopback alone when all ranks are on this host; else what MASTER_ADDR stands for, without
// loopback addresses where it stands for others too. Empty with an error when the name is unknown.
std::vector<boost::asio::ip::address> addresses_of(const Meeting& meeting,
                                                   boost::system::error_code& error);

// Why ranks may not meet at these addresses, with a remedy; "" when they may. Other hosts reach
// what is not loopback, so that takes a token.
std::string refusal_of(const Meeting& meeting,
                       const std::vector<boost::asio::ip::address>& addresses);

}  // namespace runtime
