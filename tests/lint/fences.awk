# Reads the names of the source files from stdin, then each file. The rules are in the tables below.

BEGIN {
  # Who may include whom. Files outside these folders (tests, the package consumer) may include everything.
  may["costmodel"] = "costmodel"
  may["planner"] = "planner costmodel"
  may["runtime"] = "runtime costmodel"
  may["calibrate"] = "calibrate runtime costmodel"
  may["tests"] = "tests planner costmodel runtime calibrate"

  # Which files may include which library; a library that stands in no line may be included nowhere.
  library("^yaml-cpp/", "^costmodel/yaml_io\\.cpp$")
  library("^boost/program_options", "^(planner|runtime|calibrate)/main\\.cpp$|^planner/options\\.[ch]pp$|^runtime/command_line\\.[ch]pp$")
  library("^boost/asio/", "^runtime/tcp_[^/]*\\.[ch]pp$|^tests/")
  library("^boost/context/", "^tests/")
  library("^boost/align/", "^calibrate/op_bench\\.cpp$")
  library("^(unsupported/)?Eigen/", "^calibrate/|^runtime/cpu/")
  library("^(cblas|dnnl|oneapi/)", "^runtime/cpu/gemm[^/]*\\.[ch]pp$")
  library("^(cuda|cublas|cudnn|nccl|nv|curand|cusolver|cusparse|cub/|thrust/|cooperative_groups|mma\\.h|driver_types)",
          "^runtime/cuda/")
  library("^mpi\\.h$", "^runtime/transport[^/]*\\.cpp$|^tests/runtime/mpi/one_thread\\.cpp$")
  library("^(coin/)?(Cbc|Osi|Coin|Clp|Cgl)", "^planner/milp\\.cpp$")
  library("^nlohmann/", "^(costmodel|planner|runtime)/json[^/]*\\.[ch]pp$|^tests/")
  library("^fmt/", "^(costmodel|planner|calibrate|tests)/|^runtime/.*[ch]pp$")  # nvcc does not read fmt 9 as C++20
  library("^(doctest|benchmark)/", "^tests/")
  library("^[a-z_]+$|^(sys|netinet|arpa)/|^(unistd|fcntl|poll|time|sched|pthread|signal|spawn|dlfcn)\\.h$", ".")

  while ((getline name < "/dev/stdin") > 0) {
    files[++file_count] = name
    exists[name] = 1
  }
  for (i = 1; i <= file_count; ++i) read(files[i])
  find_rings("file")
  find_rings("folder")
  exit breaches > 0
}

function library(header, file) {
  library_header[++library_count] = header
  library_file[library_count] = file
}

function breach(where, rule, reason) {
  print where ": [" rule "] " reason
  ++breaches
}

function folder_of(file) {
  return match(file, /\/[^\/]*$/) ? substr(file, 1, RSTART - 1) : "."
}

function is_header(file) { return file ~ /\.(hpp|cuh)$/ }

function read(file,    line, bare, number, in_comment, once) {
  while ((getline line < file) > 0) {
    ++number
    if (in_comment) {
      if (!sub(/^.*\*\//, "", line)) continue
      in_comment = 0
    }
    bare = line
    gsub(/'\\?"'/, "0", bare)
    gsub(/"([^"\\]|\\.)*"/, "\"\"", bare)
    if (line !~ /^[ \t]*#[ \t]*include/) line = bare
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
    if (line ~ /^[ \t]*#[ \t]*pragma[ \t]+once/) once = 1
    if (line ~ /^[ \t]*#[ \t]*include/) include(file, file ":" number, line)
    sub(/\/\/.*/, "", line)
    if (is_header(file) && line ~ /(^|[^A-Za-z0-9_])using[ \t]+namespace[ \t]/)
      breach(file ":" number, "header", "`using namespace` in a header")
    if (sub(/\/\*.*$/, "", line)) in_comment = 1
  }
  close(file)
  if (is_header(file) && !once) breach(file ":1", "header", "no #pragma once")
}

function include(file, where, line,    quoted, target) {
  quoted = line ~ /^[^"<]*"/
  target = line
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*$/, "", target)
  if (quoted) include_own(file, where, target)
  else include_library(file, where, target)
}

function include_own(file, where, target,    from, to) {
  if (target ~ /(^|\/)\.\.?\//) return breach(where, "path", "\"" target "\" is not written from the root")
  if (target !~ /\//) return breach(where, "path", "\"" target "\" is not written from the root")
  if (!(target in exists)) return breach(where, "path", "\"" target "\" does not exist under the root")
  from = substr(file, 1, index(file, "/") - 1)
  to = substr(target, 1, index(target, "/") - 1)
  if (index(" " may[from] " ", " " to " ") == 0)
    return breach(where, "arrow", from " may not include " to " (\"" target "\")")
  edge("file", file, target, where)
  if (file !~ /(^|\/)main\.cpp$/ && folder_of(file) != folder_of(target))
    edge("folder", folder_of(file), folder_of(target), where)
}

function include_library(file, where, target,    i) {
  if (target in exists) return breach(where, "path", "<" target "> is our own: quote it")
  for (i = 1; i <= library_count; ++i) {
    if (target !~ library_header[i]) continue
    if (file !~ library_file[i]) breach(where, "library", "<" target "> may not be included here")
    return
  }
  breach(where, "library", "<" target "> is in no fence: give it one in tests/lint/fences.awk")
}

# The graph of who includes whom, once of files and once of folders; a depth-first walk finds its rings.
function edge(kind, from, to, where) {
  if ((kind, from, to) in first_place) return
  first_place[kind, from, to] = where
  successors[kind, from] = successors[kind, from] to "\n"
  if (!((kind, from) in is_node)) {
    is_node[kind, from] = 1
    nodes[kind, ++node_count[kind]] = from
  }
}

function find_rings(kind,    i) {
  for (i = 1; i <= node_count[kind]; ++i)
    if (!state[kind, nodes[kind, i]]) walk(kind, nodes[kind, i], nodes[kind, i])
}

function walk(kind, node, path,    list, count, i, ring) {
  state[kind, node] = "open"
  count = split(successors[kind, node], list, "\n") - 1
  for (i = 1; i <= count; ++i) {
    if (state[kind, list[i]] == "open") {
      ring = substr(" " path " ", index(" " path " ", " " list[i] " ") + 1)
      gsub(/ /, " -> ", ring)
      breach(first_place[kind, node, list[i]], "cycle", kind "s include one another: " ring list[i])
    } else if (!state[kind, list[i]]) {
      walk(kind, list[i], path " " list[i])
    }
  }
  state[kind, node] = "done"
}
