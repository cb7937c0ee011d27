#include "planner/traces/unpacked_file.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"

#ifdef SHARDPLAN_WITH_ZLIB
#include <zlib.h>
#endif

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t most_bytes = std::size_t{4} << 30;

bool is_packed(std::string_view piece) {
  return piece.size() > 2 && piece[0] == '\x1f' && piece[1] == '\x8b';
}

void count(std::size_t& sum, std::size_t more, const std::string& path) {
  sum += more;
  if (sum > most_bytes) {
    throw ConfigError({path, 0, 0}, fmt::format("has more than {} GiB", most_bytes >> 30),
                      "record fewer iterations: two are enough");
  }
}

// As it is written.
class Plain {
 public:
  Plain(std::unique_ptr<InputPieces> file, std::string_view first)
      : file_(std::move(file)), first_(first) {}
  std::string_view next() {
    const std::string_view piece = first_.empty() ? file_->next() : std::exchange(first_, {});
    count(sum_, piece.size(), file_->path());
    return piece;
  }

 private:
  std::unique_ptr<InputPieces> file_;
  std::string_view first_;
  std::size_t sum_ = 0;
};

#ifdef SHARDPLAN_WITH_ZLIB

class Packed {
 public:
  Packed(std::unique_ptr<InputPieces> file, std::string_view first)
      : file_(std::move(file)), input_(first), output_(std::size_t{1} << 18) {
    constexpr int gzip_of_any_window = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_of_any_window) != Z_OK) throw std::bad_alloc();
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  ~Packed() { inflateEnd(&stream_); }

  std::string_view next() {
    std::size_t made = 0;
    while (made == 0 && more()) {
      // zlib reads its input and never writes it.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
      stream_.avail_in = static_cast<uInt>(input_.size());
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
        throw ConfigError({file_->path(), 0, 0},
                          fmt::format("is not what gzip packs, after {} bytes unpacked", sum_),
                          "copy or record it again");
      }
      input_ = input_.substr(input_.size() - stream_.avail_in);
      made = output_.size() - stream_.avail_out;
      begun_ = state != Z_STREAM_END;
      if (!begun_) inflateReset(&stream_);  // another member may follow
    }
    count(sum_, made, file_->path());
    return {output_.data(), made};
  }

 private:
  // Whether there is input, or output that waits.
  bool more() {
    if (!input_.empty()) return true;
    input_ = file_->next();
    if (!input_.empty()) return true;
    if (begun_) {
      throw ConfigError(
          {file_->path(), 0, 0},
          fmt::format("ends in the middle, after {} bytes unpacked: it was cut short", sum_),
          "copy or record it again, in full");
    }
    return false;
  }

  std::unique_ptr<InputPieces> file_;
  std::string_view input_;
  std::vector<char> output_;
  z_stream stream_{};
  std::size_t sum_ = 0;
  bool begun_ = true;
};

#endif

}  // namespace

std::function<std::string_view()> unpacked_file(const std::string& path) {
  auto file = std::make_unique<InputPieces>(path);
  const std::string_view first = file->next();
  if (!is_packed(first)) {
    auto plain = std::make_shared<Plain>(std::move(file), first);
    return [plain] { return plain->next(); };
  }
#ifdef SHARDPLAN_WITH_ZLIB
  auto packed = std::make_shared<Packed>(std::move(file), first);
  return [packed] { return packed->next(); };
#else
  throw ConfigError({path, 0, 0}, "is packed by gzip, and this program was built without zlib",
                    "unpack it with gunzip");
#endif
}

bool unpacks_files() {
#ifdef SHARDPLAN_WITH_ZLIB
  return true;
#else
  return false;
#endif
}

}  // namespace planner
