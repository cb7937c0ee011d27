#include "costmodel/base/path.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

// A path with a zero byte would mean another one to the system.
bool look_at(const std::string& path, struct stat& file) {
  return path.find('\0') == std::string::npos && stat(path.c_str(), &file) == 0;
}

DIR* look_inside(const std::string& folder) {
  if (folder.find('\0') != std::string::npos) return nullptr;
  DIR* const inside = opendir(folder.c_str());
  if (inside == nullptr && errno == ENOMEM) throw std::bad_alloc();
  return inside;
}

}  // namespace

std::string file_name_of(const std::string& path) { return fs::path(path).filename().string(); }

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

std::string ending_of(const std::string& path) { return fs::path(path).extension().string(); }

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

std::string joined_path(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

std::string absolute_path(const std::string& path) {
  std::error_code status;
  const fs::path rooted = fs::absolute(path, status);
  return status ? path : rooted.string();
}

std::string normal_path(const std::string& path) {
  return fs::path(absolute_path(path)).lexically_normal().string();
}

std::string relative_path(const std::string& path, const std::string& folder) {
  return fs::path(normal_path(path)).lexically_relative(normal_path(folder)).string();
}

bool path_exists(const std::string& path) {
  struct stat file;
  return look_at(path, file);
}

bool is_folder(const std::string& path) {
  struct stat file;
  return look_at(path, file) && S_ISDIR(file.st_mode);
}

bool is_regular_file(const std::string& path) {
  struct stat file;
  return look_at(path, file) && S_ISREG(file.st_mode);
}

bool is_link(const std::string& path) {
  struct stat file;
  return path.find('\0') == std::string::npos && lstat(path.c_str(), &file) == 0 &&
         S_ISLNK(file.st_mode);
}

bool is_own_file(const std::string& path) {
  struct stat file;
  return path.find('\0') == std::string::npos && lstat(path.c_str(), &file) == 0 &&
         S_ISREG(file.st_mode) && file.st_nlink == 1;
}

std::vector<FolderEntry> entries_of(const std::string& folder) {
  constexpr std::size_t most = 100000;
  std::vector<FolderEntry> entries;
  // A directory_iterator with a std::error_code ends the program where memory runs out.
  const std::unique_ptr<DIR, int (*)(DIR*)> open(look_inside(folder), closedir);
  while (const dirent* entry = open ? readdir(open.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == most) {
      throw ConfigError({folder, 0, 0}, fmt::format("holds more than {} names", most),
                        "name a folder with fewer files in it");
    }
    entries.push_back({name, is_regular_file(joined_path(folder, name))});
  }
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

std::vector<std::string> files_like(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  std::erase_if(files, is_folder);
  return files;
}

void make_folder(const std::string& path) {
  std::error_code status;
  if (path.find('\0') == std::string::npos) fs::create_directories(path, status);
  if (is_folder(path)) return;
  const std::string why = status ? ": " + status.message() : "";
  throw ConfigError({path, 0, 0}, "is not a folder and cannot be made one" + why,
                    "choose another place");
}

void remove_file(const std::string& path) {
  if (path.find('\0') == std::string::npos) unlink(path.c_str());
}

std::string program_file() {
  std::error_code status;
  const fs::path linked = fs::read_symlink("/proc/self/exe", status);
  if (!status) return linked.string();
  // A bare root may have no /proc: the path that the program was started by.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const fs::path real = started == nullptr ? fs::path() : fs::canonical(started, status);
  return status ? "" : real.string();
}

}  // namespace costmodel
