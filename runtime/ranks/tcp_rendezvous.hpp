// Connects the processes that torchrun started: one TCP connection per pair of ranks. Rank 0
// listens; the others report the port they listen on, and rank 0 sends everyone the table of
// addresses. Nothing authenticates a rank: for networks whose hosts trust one another, as with
// torchrun's own store.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/ranks/meeting.hpp"

namespace runtime {

// Returns the sockets to the other ranks, by rank; this rank's own is closed. Succeeds on all ranks
// or on none: throws RunFault within about twice `patience`, with the first cause found: ranks are
// missing or gone, have another WORLD_SIZE or the same RANK, or cannot be reached.
std::vector<boost::asio::ip::tcp::socket> meet(boost::asio::io_context& io, const Meeting& meeting,
                                               costmodel::Seconds patience);

}  // namespace runtime
