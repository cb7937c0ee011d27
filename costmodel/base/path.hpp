// Names of files and folders, and what stands where they lead. All but make_folder() and
// entries_of() throw nothing: what cannot be looked at is not there.
#pragma once

#include <string>
#include <vector>

namespace costmodel {

// Parts of the text alone. Of "a/b/c.d.yaml": "c.d.yaml", "c.d", ".yaml", "a/b" ("" where there is
// no folder).
std::string file_name_of(const std::string& path);
std::string stem_of(const std::string& path);
std::string ending_of(const std::string& path);
std::string folder_of(const std::string& path);

// "folder/name"; the name alone where it is absolute or there is no folder.
std::string joined_path(const std::string& folder, const std::string& name);

// From the root; the path itself where the working directory is gone. The normal path is without
// "." and ".." too: a name, for a link may lead elsewhere.
std::string absolute_path(const std::string& path);
std::string normal_path(const std::string& path);

// The same path seen from a folder: "../devices/x.yaml".
std::string relative_path(const std::string& path, const std::string& folder);

// What a path leads to, links followed.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);
bool is_regular_file(const std::string& path);

// Whether the path itself is a symbolic link.
bool is_link(const std::string& path);

// A regular file of one name, and no link: what a program may have written there and may replace.
bool is_own_file(const std::string& path);

struct FolderEntry {
  std::string name;
  bool regular;  // a regular file, links followed
};

// What is in a folder, sorted by name; nothing where it cannot be read. Throws ConfigError where
// there are more than 100,000 names.
std::vector<FolderEntry> entries_of(const std::string& folder);

// What a pattern of a shell ("runs/*.yaml") leads to, folders left out, sorted.
std::vector<std::string> files_like(const std::string& pattern);

// Makes a folder and those above it. Throws ConfigError where that fails, or something else is
// there.
void make_folder(const std::string& path);

// Removes a file, link or pipe, if there is one.
void remove_file(const std::string& path);

// The file of the program that runs: "" where it is not known.
std::string program_file();

}  // namespace costmodel
