// The interface for messages between ranks; ranks/ implements it for threads, MPI and TCP.
// Collectives and pipeline transfers are built on it, so that the bytes counted are the bytes sent.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace runtime {

// A rank failed: which one, and a sentence with the cause. The program ends with exit status 4.
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
  // A second transport between the same ranks, for one other thread of this rank, with tags of its
  // own. The same object at every call; lives as long as this. Null when only one thread may
  // communicate. The first call is collective and throws RunFault when another rank does not make
  // it.
  virtual Transport* beside() { return nullptr; }
  // Makes every pending and later recv() throw RunFault. Callable from any thread.
  virtual void stop() {}
  // Asynchronous: returns when the buffer may be reused and never waits for the receiver. Messages
  // of one tag between two ranks arrive in order.
  virtual void send(int to, int tag, std::span<const std::byte> message) = 0;
  // Waits for the message. Throws RunFault when its size differs, when the run was given up, or
  // when the patience (timeout) is over.
  virtual void recv(int from, int tag, std::span<std::byte> message) = 0;
  // Announces a later recv() of this message, in the order of the calls, so that the receive can be
  // posted early.
  virtual void expect(int /*from*/, int /*tag*/, std::size_t /*bytes*/) {}
  // Throws RunFault when the run was given up.
  virtual void heed() {}
  // Advances pending sends without waiting, for transports without a progress thread (MPI moves
  // large messages only inside its calls); true while some are pending. For ranks that compute or
  // sleep long.
  virtual bool progress() { return false; }
};

// A text as two messages of one tag: its length, then itself.
void send_text(Transport& transport, int to, int tag, const std::string& text);
std::string recv_text(Transport& transport, int from, int tag);

// Throws RunFault when the number of ranks is not `ranks`, which `what` ("the plan") requires.
void require_size(const Transport& transport, int ranks, const std::string& what);

}  // namespace runtime
