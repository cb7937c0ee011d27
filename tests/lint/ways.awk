# Reads the names of the source files from stdin, then each file. Comments and the contents of literals do not count.

BEGIN {
  # The files in which a line may match the pattern, and what others write.
  base = "^costmodel/(base|config)/"
  way("open", "(^|[^A-Za-z_])(std::)?(basic_)?[io]?fstream([^A-Za-z_]|$)", base, "read_file() or write_file()")
  way("open", "[^A-Za-z_](fopen|freopen|fdopen|tmpfile|mkstemp)[ ]*\\(", base, "read_file() or write_file()")
  way("open", "[^A-Za-z_]O_(RDONLY|WRONLY|RDWR|CREAT|TRUNC|PATH)([^A-Za-z_]|$)", base, "read_file(), write_file() or LineFile")
  way("open", "[^A-Za-z_.>](opendir|scandir|ftw|nftw|fts_open|glob)[ ]*\\(", base, "entries_of() or files_like()")
  way("path", "(std::filesystem|[^A-Za-z_]fs)::|<filesystem>|<fstream>|<glob\\.h>|<dirent\\.h>|<sys/stat\\.h>", base, "costmodel/base/path.hpp")
  way("path", "(^|[^A-Za-z_.>])(::)?(unlink|mkdir|rmdir|readlink|realpath|symlink|access|lstat|chmod|truncate)(at)?[ ]*\\(", base,
      "costmodel/base/path.hpp")
  way("parse", "[Jj]son::(parse|accept|sax_parse|from_[a-z]+)[ ]*\\(|\\.dump\\(", "^costmodel/base/json_(text|stream)\\.cpp$",
      "costmodel/base/json_text.hpp")
  way("parse", "toml::parse", "^costmodel/config/toml\\.cpp$", "parse_toml()")
  way("parse", "YAML::(Load|Parser|Emitter|Node)", "^costmodel/config/yaml\\.cpp$", "parse_yaml() and to_yaml()")
  way("print", "fmt::v?print|std::(cout|cerr|clog|cin|v?printf|v?fprintf|f?puts|f?putc|putchar|fwrite|fread|f?gets|f?getc|scanf|perror)([^A-Za-z_]|$)",
      "^costmodel/base/(console|output_file)\\.cpp$", "costmodel/base/console.hpp or write_standard_output()")
  way("print", "(^|[^A-Za-z_:.>])(v?f?printf|puts|fputs|perror)[ ]*\\(|[^A-Za-z_](stdout|stderr|stdin)([^A-Za-z_]|$)",
      "^costmodel/base/(console|output_file)\\.cpp$", "costmodel/base/console.hpp or write_standard_output()")

  # In costmodel/base and costmodel/config: what throws on a path that cannot be looked at.
  calls = "fs::(absolute|canonical|weakly_canonical|copy|copy_file|create_director(y|ies)|current_path|equivalent|exists|" \
          "file_size|hard_link_count|is_[a-z_]+|last_write_time|permissions|proximate|relative|read_symlink|remove|" \
          "remove_all|rename|resize_file|space|status|symlink_status|temp_directory_path)[ ]*\\("

  while ((getline name < "/dev/stdin") > 0) read(name)
  exit breaches > 0
}

function way(rule, pattern, where, instead) {
  rules[++count] = rule
  patterns[count] = pattern
  places[count] = where
  others[count] = instead
}

function breach(file, number, rule, reason) {
  print file ":" number ": [" rule "] " reason
  ++breaches
}

function read(file,    line, number, in_comment) {
  while ((getline line < file) > 0) {
    ++number
    if (in_comment) {
      if (!sub(/^.*\*\//, "", line)) continue
      in_comment = 0
    }
    gsub(/'\\?"'/, "0", line)
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    sub(/\/\/.*/, "", line)
    if (sub(/\/\*.*$/, "", line)) in_comment = 1
    check(file, number, line)
  }
  close(file)
}

function check(file, number, line,    i, rest) {
  for (i = 1; i <= count; ++i)
    if (line ~ patterns[i] && file !~ places[i])
      breach(file, number, rules[i], "this is done in " shown(places[i]) ": use " others[i])
  rest = line
  if (gsub(calls, "", rest) > gsub(/, status\)/, "", rest))
    breach(file, number, "throw", "this form of std::filesystem throws: hand it a std::error_code, `status`")
  if (line ~ /directory_iterator/)
    breach(file, number, "throw", "this walk throws, or ends the program where memory runs out: use entries_of()")
  if (line ~ /\.(is_regular_file|is_directory|is_symlink|file_size|exists|status)\(\)/)
    breach(file, number, "throw", "this member of std::filesystem throws: use costmodel/base/path.hpp")
}

function shown(place) {
  gsub(/[\^$\\]/, "", place)
  return place
}
