// The seam between ranks: messages from one to another. Threads of a process and MPI processes each
// have their own; collectives and the pipeline's transfers are built on it, so that the bytes
// counted are the bytes sent.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace runtime {

// A rank could not go on: what, where. Ends the run with status 4.
class RunFault : public std::runtime_error {
 public:
  RunFault(int rank, const std::string& what) : std::runtime_error(what), rank_(rank) {}
  int rank() const { return rank_; }  // the rank at fault

 private:
  int rank_;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The same ranks for one other thread of this rank, whose tags differ from this one's: the same
  // at every call, alive as long as this is. Null where one thread alone may send. All ranks make
  // the first call; throws RunFault where another does not.
  virtual Transport* beside() { return nullptr; }
  // From any thread: recv() throws RunFault from now on, where one waits too.
  virtual void stop() {}
  // Returns when `message` may be used again; never waits for the receiver. Messages of one tag
  // between two ranks arrive in order.
  virtual void send(int to, int tag, std::span<const std::byte> message) = 0;
  // Waits for the message. Throws RunFault when it is of another size, when the run was given up,
  // or when nothing came for too long.
  virtual void recv(int from, int tag, std::span<std::byte> message) = 0;
  // That recv() will be called for this message, after those announced before it: room may be made
  // for it now.
  virtual void expect(int /*from*/, int /*tag*/, std::size_t /*bytes*/) {}
  // Throws RunFault where the run was given up.
  virtual void heed() {}
  // Helps sent messages on their way where nobody else does (MPI moves large ones only inside its
  // calls), without waiting; true while some still are. For ranks that compute or sleep long.
  virtual bool progress() { return false; }
};

// Throws RunFault when the world has another size than `ranks`, which `what` ("the plan") wants.
void require_size(const Transport& transport, int ranks, const std::string& what);

}  // namespace runtime
