// A file descriptor is closed once, by its last owner.
#include "costmodel/base/file_descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <utility>

namespace file_descriptor_test {

using costmodel::FileDescriptor;

namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("its end closes it, a move does not") {
  int number = -1;
  {
    FileDescriptor first(open("/dev/null", O_RDONLY));
    number = first.get();
    REQUIRE(is_open(number));
    const FileDescriptor second(std::move(first));
    CHECK(second.get() == number);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("closing tells of a fault, and only once") {
  FileDescriptor file(open("/dev/null", O_RDONLY));
  CHECK(static_cast<bool>(file));
  CHECK(file.close());
  CHECK_FALSE(static_cast<bool>(file));
  CHECK(file.close());
  FileDescriptor none(1 << 20);  // no such descriptor
  CHECK_FALSE(none.close());
}

}  // namespace file_descriptor_test
