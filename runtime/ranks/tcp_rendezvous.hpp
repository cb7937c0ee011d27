// How processes that torchrun started find one another: a TCP connection between each two of them.
// Rank 0 listens, the others come with the port they listen on themselves, and rank 0 tells all
// where everybody is. Whoever reaches the port may say that it is a rank: that is for networks
// whose hosts trust one another, as torchrun's own store is.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/ranks/meeting.hpp"

namespace runtime {

// The connections to the other ranks, by rank; that to this rank is closed. Returns on all ranks or
// on none: throws RunFault within about twice `patience`, with the cause that the first of them
// met: ranks are missing, or gone, have another WORLD_SIZE or the same RANK, or cannot be reached.
std::vector<boost::asio::ip::tcp::socket> meet(boost::asio::io_context& io, const Meeting& meeting,
                                               costmodel::Seconds patience);

}  // namespace runtime
