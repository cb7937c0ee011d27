// Files that commands read and write: of every kind, size and name. It takes seconds because files
// are as large as they may be, and because a pipe gets three seconds.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace cli_files_test {

namespace fs = std::filesystem;
using cli::llama;
using fixtures::contains;
using program::Run;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

// Every command that reads a file, with FILE in its place.
const std::vector<std::string> readers{"evaluate FILE",
                                       "plan FILE",
                                       "sweep FILE --over tp=1,2",
                                       "validate FILE",
                                       "validate runs.yaml --rows --format md --notes FILE",
                                       "validate runs.yaml --fit FILE",
                                       "import hf FILE",
                                       "import nccl-tests FILE",
                                       "run FILE",
                                       "run llama.yaml --calibrated FILE",
                                       "calibrate --from FILE --base dgx-h100",
                                       "evaluate llama.yaml --set model=FILE",
                                       "evaluate llama.yaml --set cluster.device=FILE"};

const std::string runs =
    "runs:\n  - {id: one, model: llama-3-8b, cluster: {base: dgx-h100, devices: 16}, "
    "training: {global_batch: 64, sequence: 8192, precision: bf16, stack: megatron-core-2025}, "
    "plan: {tp: 2, pp: 2, micro_batch: 2}, measured: {iteration_s: 10}}\n";

// A message of one line with a remedy, and status 2, long before the program would be killed.
void check_refused(const std::string& reader, const std::string& file, const std::string& told,
                   const Scratch& scratch) {
  const std::string command = program::replaced(reader, "FILE", file);
  CAPTURE(command);
  const Run failed = run(words_of(command), scratch, std::chrono::seconds(30));
  CHECK(failed.status == 2);
  CHECK(contains(failed.err, told));
  CHECK(contains(failed.err, "; "));
  CHECK(failed.out == "");
}

std::string often(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("a comma after the end of a document ends no command's memory") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  scratch.write("runs.yaml", runs);
  scratch.write("x.json", "{\"a\": 1},");
  const std::string told = "x.json:1:9: the file holds more than one YAML document";
  for (const auto& reader : readers)
    if (!contains(reader, "--notes")) check_refused(reader, "x.json", told, scratch);
  check_refused("evaluate llama.yaml --set FILE", "plan={tp:2},", "more than one YAML document",
                scratch);
}

TEST_CASE("a device, a directory and a large file are refused by every command that reads one") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  scratch.write("runs.yaml", runs);
  scratch.write("large.yaml", "a: 1\n");
  fs::create_directory(scratch.path() / "folder.yaml");
  fs::resize_file(scratch.path() / "large.yaml", (std::uintmax_t{16} << 20) + 1);
  for (const auto& reader : readers) {
    check_refused(reader, "/dev/zero", "/dev/zero: is a device or a socket", scratch);
    check_refused(reader, "large.yaml", "large.yaml: is larger than ", scratch);
    if (reader != "validate FILE")  // a folder of evidence
      check_refused(reader, "./folder.yaml", "folder.yaml: is a directory", scratch);
  }
  check_refused("validate FILE", "folder.yaml", "holds no *.yaml with runs", scratch);
}

TEST_CASE("a pipe that nobody writes to is given up, and one in a folder of evidence left out") {
  const Scratch scratch;
  fs::create_directory(scratch.path() / "folder");
  REQUIRE(mkfifo((scratch.path() / "folder" / "a.yaml").c_str(), 0600) == 0);
  check_refused("evaluate FILE", "folder/a.yaml", "had no writer within 3 s", scratch);
  scratch.write("folder/runs.yaml", runs);
  const Run done = run({"validate", "folder"}, scratch, std::chrono::seconds(30));
  CHECK(done.status == 0);
}

TEST_CASE("large legal files are read, whatever their shape") {
  const Scratch scratch;
  // The map of many keys is as large as a file may be: merged in quadratic time it would take
  // minutes.
  const std::size_t most = (std::size_t{4} << 20) >> (sanitized ? 5 : 0), size = most / 4;
  std::string base = "model: {base: gpt2";
  for (std::size_t i = 0; base.size() + 20 < most; ++i) base += ",\nk" + std::to_string(i) + ": 1";
  const std::string lacks = "lacks the key 'model'";
  const auto check = [&](const std::string& text, const std::string& told) {
    scratch.write("file.yaml", text);
    check_refused("evaluate FILE", "file.yaml", told, scratch);
  };
  check(base + "}\n", "has no key 'k0'");
  check("a:\n" + often("- b\n", size / 8 - 10), lacks);
  check("a: [" + often("b,", size / 8 - 10) + "b]\n", lacks);
  check("# " + std::string(size - 100, 'x') + "\na: 1\n", lacks);
  check(often("#\n", size / 2 - 10) + "a: 1\n", lacks);
  check("a: 1" + std::string(size - 100, ' ') + "\n", lacks);
  check("a: [" + often("\"" + std::string(1000, 'x') + "\", ", size / 1004 - 1) + "]\n", lacks);
  check("model: " + std::string(60'000, 'x') + "\n" + often("#\n", 1000), "no model 'xxx");
}

}  // namespace cli_files_test
