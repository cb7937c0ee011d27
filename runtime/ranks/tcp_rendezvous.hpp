// Connects the processes that torchrun started: one TCP connection per pair of ranks. Rank 0
// listens at MASTER_ADDR (runtime/ranks/tcp_addresses.hpp); the others listen where they reach it
// from and report the port, and rank 0 sends everyone the table of addresses. Both ends of every
// connection prove that they know the run's token (runtime/ranks/tcp_handshake.hpp); whoever does
// not neither takes a rank's place nor keeps a rank waiting (runtime/ranks/tcp_gate.hpp).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/ranks/meeting.hpp"

namespace runtime {

// Returns the sockets to the other ranks, by rank; this rank's own is closed. Succeeds on all ranks
// or on none: throws RunFault within about twice `patience`, with the first cause found: ranks are
// missing or gone, have another WORLD_SIZE or token, the same RANK or no token where other hosts
// reach MASTER_ADDR, or cannot be reached.
std::vector<boost::asio::ip::tcp::socket> meet(boost::asio::io_context& io, const Meeting& meeting,
                                               costmodel::Seconds patience);

}  // namespace runtime
