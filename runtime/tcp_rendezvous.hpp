// How processes that torchrun started find one another: a TCP connection between each two of them.
// Rank 0 listens, the others come with the port they listen on themselves, and rank 0 tells all
// where everybody is. Whoever reaches the port may say that it is a rank: that is for networks
// whose hosts trust one another, as torchrun's own store is.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>
#include <vector>

#include "costmodel/units.hpp"

namespace runtime {

// What the environment says of it.
struct Meeting {
  int rank = 0, world = 1;
  std::string host;        // MASTER_ADDR: rank 0's
  std::vector<int> ports;  // where rank 0 listens: on the first that is free
  std::string run;         // tells this run from others that use the same ports
};

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens on MASTER_PORT, or on one of the
// eight behind it where torchrun's agent has its store there (TORCHELASTIC_USE_AGENT_STORE). Throws
// RunFault when one of them is missing or no number.
Meeting meeting();

// The connections to the other ranks, by rank; that to this rank is closed. Throws RunFault within
// about twice `patience`: ranks are missing, or have another WORLD_SIZE, or the same RANK.
std::vector<boost::asio::ip::tcp::socket> meet(boost::asio::io_context& io, const Meeting& meeting,
                                               costmodel::Seconds patience);

}  // namespace runtime
