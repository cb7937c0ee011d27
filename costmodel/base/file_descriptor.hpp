// Owns a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace costmodel {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}  // -1: none
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // False when the system reports an error, such as a write that was deferred and failed.
  bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace costmodel
