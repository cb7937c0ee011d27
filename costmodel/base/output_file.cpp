#include "costmodel/base/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// The file to write: a symbolic link is followed, so that its target is replaced and not the link.
std::filesystem::path target_of(const std::string& path) {
  std::error_code status;
  const auto target = std::filesystem::canonical(path, status);
  return status ? std::filesystem::path(path) : target;
}

bool is_stream(const std::filesystem::path& path) {  // a device or a pipe must not be renamed over
  std::error_code status;
  return std::filesystem::is_other(path, status);
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  const auto target = target_of(path);
  const bool direct = is_stream(target);
  const std::string beside = target.string() + (direct ? "" : ".part");
  std::ofstream out(beside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out || (!direct && std::rename(beside.c_str(), target.c_str()) != 0)) {
    const std::string why = std::strerror(errno);
    if (!direct) std::remove(beside.c_str());
    throw ConfigError({path, 0, 0}, "cannot be written: " + why, "choose another place");
  }
}

}  // namespace costmodel
