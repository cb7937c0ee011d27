# Reads the names of the source files from stdin, then each file. The rules are in the tables below.

BEGIN {
  # Who may include whom. A folder includes itself and what its row names: folders beside it by their own name, those of
  # other top folders in full, or all of a top folder ("costmodel/*"). A main.cpp may include everything its top folder
  # may. Tests may include everything.
  top["costmodel"] = "costmodel/*"
  top["planner"] = "planner/* costmodel/*"
  top["runtime"] = "runtime/* costmodel/*"
  top["calibrate"] = "calibrate/* runtime/* costmodel/*"
  top["python"] = "planner/* costmodel/*"
  top["tests"] = "tests tests/* planner/* costmodel/* runtime/* calibrate/*"

  row("costmodel/base", "")
  row("costmodel/cli", "base")
  row("costmodel/config", "base")
  row("costmodel/model", "base config")
  row("costmodel/machine", "base config")
  row("costmodel/schedule", "base")
  row("costmodel/plan", "base config model machine schedule")
  row("costmodel/scenario", "base config model machine plan schedule")
  row("costmodel/operators", "base model plan")
  row("costmodel/cost", "base machine plan operators")
  row("costmodel/estimate", "base model machine schedule plan operators cost")
  row("costmodel/serving", "base config model machine plan scenario operators cost")

  row("planner/solvers", "costmodel/base")
  row("planner/logs", "costmodel/*")
  row("planner/traces", "costmodel/*")
  row("planner/exchange", "costmodel/*")
  row("planner/frameworks", "exchange logs costmodel/*")
  row("planner/sharding", "solvers costmodel/*")
  row("planner/search", "solvers sharding costmodel/*")
  row("planner/diagnosis", "logs search costmodel/*")
  row("planner/report", "diagnosis search sharding frameworks logs traces costmodel/*")
  row("planner/page", "report diagnosis search costmodel/*")
  row("planner/batch", "report page costmodel/*")
  row("planner/accuracy", "report page search solvers traces costmodel/*")
  row("planner/commands", "planner/* costmodel/*")

  row("runtime/cpu", "costmodel/base costmodel/model costmodel/operators")
  row("runtime/backend", "cpu costmodel/*")
  row("runtime/kernels", "cpu backend")
  row("runtime/devices", "cpu backend costmodel/*")
  row("runtime/ranks", "backend costmodel/*")
  row("runtime/engine", "backend ranks costmodel/*")
  row("runtime/cuda", "cpu backend kernels")
  row("runtime/training", "cpu backend ranks engine costmodel/*")
  row("runtime/serving", "cpu backend devices ranks training costmodel/*")
  row("runtime/run", "cpu backend devices ranks engine training serving costmodel/*")

  row("calibrate/measure", "runtime/* costmodel/*")
  row("calibrate/fit", "costmodel/*")
  row("calibrate/profile", "measure fit runtime/* costmodel/*")
  row("calibrate/commands", "calibrate/* runtime/* costmodel/*")

  # Which files may include which library; a library that stands in no line may be included nowhere.
  library("^yaml-cpp/", "^costmodel/config/yaml\\.cpp$")
  library("^boost/program_options", "^costmodel/cli/command_line\\.cpp$")
  library("^boost/asio/", "^runtime/ranks/tcp_[^/]*\\.[ch]pp$|^tests/")
  library("^boost/context/", "^tests/")
  library("^boost/math/", "^costmodel/plan/length_spec\\.cpp$")
  library("^boost/align/", "^calibrate/measure/op_bench\\.cpp$")
  library("^(unsupported/)?Eigen/", "^calibrate/|^runtime/cpu/")
  library("^(cblas|dnnl|oneapi/)", "^runtime/cpu/gemm[^/]*\\.[ch]pp$")
  library("^(cuda|cublas|cudnn|nccl|nv|curand|cusolver|cusparse|cub/|thrust/|cooperative_groups|mma\\.h|driver_types)",
          "^runtime/cuda/")
  library("^execinfo\\.h$", "^costmodel/cli/process\\.cpp$")
  library("^sodium\\.h$", "^runtime/ranks/tcp_proof\\.cpp$")
  library("^mpi\\.h$", "^runtime/ranks/mpi_transport\\.cpp$|^tests/runtime/ranks/mpi/one_thread\\.cpp$")
  library("^(coin/)?(Cbc|Osi|Coin|Clp|Cgl)", "^planner/solvers/milp\\.cpp$")
  library("^zlib\\.h$", "^planner/traces/unpacked_file\\.cpp$")
  library("^sqlite3\\.h$", "^planner/traces/nsight_reader\\.cpp$|^tests/")
  library("^toml\\+\\+/", "^costmodel/config/toml\\.cpp$")
  library("^nlohmann/", "^(costmodel|planner|runtime)/[a-z]+/json[^/]*\\.[ch]pp$|^tests/")
  library("^fmt/", "^(costmodel|planner|calibrate|tests)/|^runtime/.*[ch]pp$")  # nvcc does not read fmt 9 as C++20
  library("^(doctest|benchmark)/", "^tests/")
  library("^pybind11/", "^python/")
  library("^shardplan/", "^tests/package/")
  library("^[a-z_]+$|^(sys|netinet|arpa)/|^(unistd|fcntl|dirent|cxxabi|poll|time|sched|pthread|signal|spawn|dlfcn|glob)\\.h$", ".")

  while ((getline name < "/dev/stdin") > 0) {
    files[++file_count] = name
    exists[name] = 1
  }
  read_exceptions("tests/lint/exceptions.txt")
  for (i = 1; i <= file_count; ++i) read(files[i])
  find_rings("file")
  find_rings("folder")
  for (i = 1; i <= file_count; ++i) {
    check_room(files[i])
    check_unit(files[i])
  }
  check_exceptions("tests/lint/exceptions.txt")
  exit breaches > 0
}

function row(folder, allowed,    names, n, i, name) {
  n = split(allowed, names, " ")
  may[folder] = folder
  for (i = 1; i <= n; ++i) {
    name = names[i]
    may[folder] = may[folder] " " (name ~ /\// ? name : substr(folder, 1, index(folder, "/")) name)
  }
}

function top_of(path) { return substr(path, 1, index(path "/", "/") - 1) }

# Whether a file of the folder `from` may include one of `to`. A main.cpp goes by its top folder. What stands in a top folder
# itself is the installed package's one header: for those who use the package.
function is_allowed(from, to,    list) {
  if (to !~ /\// && top_of(from) != "tests") return 0
  list = " " (from in may ? may[from] : top[top_of(from)]) " "
  return index(list, " " to " ") > 0 || index(list, " " top_of(to) "/* ") > 0
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
  from = folder_of(file)
  to = folder_of(target)
  edge("file", file, target, where)
  if (is_allowed(from, to)) {
    if (file !~ /(^|\/)main\.cpp$/ && from != to) edge("folder", from, to, where)
  } else if (!excepted("arrow", file " " target)) {
    breach(where, "arrow", from " may not include " to " (\"" target "\")")
  }
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

# Every file stands in a folder of the table, but a main.cpp and the installed package's one header.
function check_room(file) {
  if (!(top_of(file) in top) || top_of(file) == "tests" || file ~ /^[a-z]+\/main\.cpp$/) return
  if (file == "costmodel/costmodel.hpp" || file == "planner/shardplan.hpp") return
  if (!(folder_of(file) in may)) breach(file ":1", "room", folder_of(file) " is not in the table of tests/lint/fences.awk")
}

# A unit is a .cpp or .cu with the header of its name, or a header alone. Tests mirror the folders.
function check_unit(file,    unit, source) {
  if (file !~ /^(costmodel|planner|runtime|calibrate)\/[a-z]+\/[^\/]*$/) return
  unit = file
  sub(/\.[a-z]+$/, "", unit)
  source = !is_header(file)
  if (source && !((unit ".hpp") in exists) && !((unit ".cuh") in exists) && !excepted("header", file))
    breach(file ":1", "header", "has no header of its own")
  if (is_header(file) && (((unit ".cpp") in exists) || ((unit ".cu") in exists))) return  # told of its source
  if (!(("tests/" unit "_test.cpp") in exists) && !excepted("test", unit))
    breach(file ":1", "test", "has no test of its name (tests/" unit "_test.cpp)")
}

# Lines "KIND WHAT: reason", and "limit KIND NUMBER": how many there are of a kind. A line that is not needed any more is
# refused, and so is a limit that is not the number there is: it is lowered with them. A reason may name a test, which must
# exist.
function read_exceptions(file,    line, key, reason) {
  while ((getline line < file) > 0) {
    ++exception_line
    if (line ~ /^(#|$)/) continue
    if (split(line, words, " ") == 3 && words[1] == "limit") {
      limit[words[2]] = words[3]
      limit_at[words[2]] = exception_line
      continue
    }
    ++exceptions_of[words[1]]
    key = line
    sub(/: .*/, "", key)
    reason = substr(line, length(key) + 3)
    exception[key]
    exception_at[exception_line] = key
    if (match(reason, /tests\/[a-z0-9_\/]+_test(\.cpp)?/) && !(substr(reason, RSTART, RLENGTH) in exists) &&
        system("test -e " substr(reason, RSTART, RLENGTH)) != 0)
      breach(file ":" exception_line, "exception", "there is no " substr(reason, RSTART, RLENGTH))
  }
  close(file)
}

function excepted(kind, what) {
  if (!((kind " " what) in exception)) return 0
  needed[kind " " what] = 1
  return 1
}

function check_exceptions(file,    i, n, kind, kinds) {
  n = split("arrow header test", kinds, " ")
  for (i = 1; i <= n; ++i) {
    kind = kinds[i]
    if (exceptions_of[kind] + 0 != limit[kind] + 0)
      breach(file ":" limit_at[kind] + 0, "exception",
             exceptions_of[kind] + 0 " exceptions of the kind `" kind "`, and the limit is " limit[kind] + 0 (exceptions_of[kind] + 0 < limit[kind] + 0 ? ": lower it" : ""))
  }
  for (i = 1; i <= exception_line; ++i)
    if ((i in exception_at) && !(exception_at[i] in needed))
      breach(file ":" i, "exception", "`" exception_at[i] "` is not needed any more: take it out")
}
