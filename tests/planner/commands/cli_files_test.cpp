// Files that commands read and write: of every kind, size and name. It takes seconds because files
// are as large as they may be, and because a pipe gets three seconds.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
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

TEST_CASE("what is wrong in a pipe is reported, though it is read once") {
  const Scratch scratch;
  const std::string pipe = scratch.path() / "pipe.yaml";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe) << "a: 1\n\tb: 2\n"; });
  const Run done = run({"evaluate", "pipe.yaml"}, scratch, std::chrono::seconds(30));
  writer.join();
  CHECK(done.status == 2);
  CHECK(done.err.find("pipe.yaml:2:1: a tab; indent with blanks") != std::string::npos);
}

TEST_CASE("large legal files are read, whatever their shape") {
  const Scratch scratch;
  // The map of many keys is as large as a file may be: merged in quadratic time it would take
  // minutes.
  const std::size_t most = (std::size_t{4} << 20) >> (sanitized ? 5 : 0), size = most / 4;
  std::string base = "model: {base: gpt2";
  for (std::size_t i = 0; base.size() + 20 < most; ++i) base += ",\nk" + std::to_string(i) + ": 1";
  const std::string unknown = "this is no scenario";
  const auto check = [&](const std::string& text, const std::string& told) {
    scratch.write("file.yaml", text);
    check_refused("evaluate FILE", "file.yaml", told, scratch);
  };
  check(base + "}\n", "has no key 'k0'");
  check("a:\n" + often("- b\n", size / 8 - 10), unknown);
  check("a: [" + often("b,", size / 8 - 10) + "b]\n", unknown);
  check("# " + std::string(size - 100, 'x') + "\na: 1\n", unknown);
  check(often("#\n", size / 2 - 10) + "a: 1\n", unknown);
  check("a: 1" + std::string(size - 100, ' ') + "\n", unknown);
  check("a: [" + often("\"" + std::string(1000, 'x') + "\", ", size / 1004 - 1) + "]\n", unknown);
  check("model: " + std::string(60'000, 'x') + "\n" + often("#\n", 1000), "no model 'xxx");
}

TEST_CASE("no command overwrites what it has read, under any name") {
  const Scratch scratch;
  const std::string config =
      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
      "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}";
  const std::string model = "base: llama-3-8b\n";
  const std::string tiny =
      "model: gpt-tiny\ncluster: {base: laptop-cpu, devices: 1}\ntraining: "
      "{global_batch: 4, sequence: 16, precision: fp32}\nplan: {}\n";
  scratch.write("llama.yaml", llama);
  scratch.write("tiny.yaml", tiny);
  scratch.write("config.json", config);
  scratch.write("model.yaml", model);
  scratch.write("runs.yaml", runs);
  fs::create_symlink("llama.yaml", scratch.path() / "link.yaml");
  fs::copy_file(SHARDPLAN_SOURCE_DIR "/configs/microbench/gemm.yaml", scratch.path() / "gemm.yaml");
  const std::string gemm = scratch.read("gemm.yaml");
  for (const char* command :
       {"evaluate llama.yaml --format yaml --out llama.yaml",
        "evaluate llama.yaml --out ./link.yaml", "evaluate link.yaml --out llama.yaml",
        "plan llama.yaml --format yaml --out llama.yaml", "plan llama.yaml --placement llama.yaml",
        "simulate llama.yaml --trace llama.yaml",
        "export llama.yaml --to megatron --out llama.yaml",
        "sweep llama.yaml --over tp=1,2 --out llama.yaml",
        "evaluate llama.yaml --set model=model.yaml --out model.yaml",
        "validate runs.yaml --out runs.yaml", "validate . --out runs.yaml",
        "validate runs.yaml --write-residuals runs.yaml", "import hf config.json --out config.json",
        "import config.json --out config.json", "run tiny.yaml --out tiny.yaml",
        "run tiny.yaml --trace tiny.yaml",
        "calibrate --from gemm.yaml --device H800 --base h100-sxm5-80gb --out gemm.yaml"}) {
    CAPTURE(command);
    const Run failed = run(words_of(command), scratch);
    CHECK(failed.status == 2);
    CHECK(contains(failed.err, "cannot be written: it is an input of this command; "));
    CHECK(failed.out == "");
    CHECK(scratch.read("llama.yaml") == llama);
    CHECK(scratch.read("tiny.yaml") == tiny);
    CHECK(scratch.read("config.json") == config);
    CHECK(scratch.read("model.yaml") == model);
    CHECK(scratch.read("runs.yaml") == runs);
    CHECK(scratch.read("gemm.yaml") == gemm);
  }
}

TEST_CASE("what a file is imports it without the name of its format") {
  const Scratch scratch;
  scratch.write("config.json",
                "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 64, "
                "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100}");
  scratch.write("train.sh",
                "torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
                "--num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 "
                "--global-batch-size 64 --vocab-size 50000 --bf16\n");
  for (const auto& [format, file] : {std::pair("hf", "config.json"), {"megatron", "train.sh"}}) {
    CAPTURE(file);
    const Run found = run({"import", file}, scratch),
              named = run({"import", format, file}, scratch);
    CHECK(found.status == 0);
    CHECK(found.out == named.out);
    CHECK(found.out != "");
  }
  const Run none = run({"import", "hf"}, scratch);
  CHECK(none.status == 2);
  CHECK(contains(none.err, "no file 'hf'; shardplan import FILE, or with its format"));
}

TEST_CASE("an output of several names is refused before anything is computed") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  fs::create_hard_link(scratch.path() / "llama.yaml", scratch.path() / "hard.yaml");
  check_refused("evaluate llama.yaml --out FILE", "hard.yaml", "it has 2 names (hard links)",
                scratch);
  check_refused("evaluate missing.yaml --out FILE", "none/file", "none/file: cannot be written",
                scratch);
}

TEST_CASE("an output keeps its permissions, and no name beside it is written") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  scratch.write("victim", "old");
  scratch.write("o.json", "old");
  fs::permissions(scratch.path() / "o.json", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("victim", scratch.path() / "o.json.part");
  const Run done = run({"evaluate", "llama.yaml", "--format", "json", "--out", "o.json"}, scratch);
  CHECK(done.status == 0);
  CHECK(scratch.read("o.json").front() == '{');
  CHECK(scratch.read("victim") == "old");
  CHECK(fs::status(scratch.path() / "o.json").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("an output that has no room is one message, to a file and to standard output") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string run_tiny =
      "run tiny-gpt-cpu --set training.sequence=16 --set "
      "training.global_batch=4 --set plan.micro_batch=1 --iterations 1";
  for (const std::string& command :
       {std::string("evaluate llama.yaml"), std::string("plan llama.yaml"), std::string("--help"),
        std::string("--version"), std::string("run --help"), std::string("calibrate --help"),
        run_tiny, run_tiny + " --format json"}) {
    CAPTURE(command);
    const Run full = run(words_of(command), scratch, program::default_patience, "/dev/full");
    CHECK(full.status == 2);
    CHECK(full.err ==
          "standard output cannot be written: No space left on device; is the disk full?\n");
    if (contains(command, "-help") || contains(command, "--version")) continue;
    const Run file = run(words_of(command + " --out /dev/full"), scratch);
    CHECK(file.status == 2);
    CHECK(file.err ==
          "/dev/full: cannot be written: No space left on device; free some space, or choose "
          "another place\n");
  }
}

TEST_CASE("an output beyond the shell's limit on files is one message, and no part of it is left") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{1024, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const Run large = run(words_of("evaluate llama.yaml --format html --out page.html"), scratch);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(large.status == 2);
  CHECK(contains(large.err, "page.html: cannot be written: File too large"));
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "page.html"));
}

TEST_CASE("a stack that is too small is one message") {
  if (sanitized) return;  // whose own start takes more
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_STACK, &before) == 0);
  const auto evaluated = [&](rlim_t kibibytes) {
    const rlimit small{kibibytes << 10, before.rlim_max};
    setrlimit(RLIMIT_STACK, &small);
    const Run ended = run(words_of("evaluate llama.yaml"), scratch);
    setrlimit(RLIMIT_STACK, &before);
    return ended;
  };
  CHECK(evaluated(64).err ==
        "shardplan: a stack of 64 KiB is too small; ulimit -s 8192 gives the usual one\n");
  CHECK(evaluated(64).status == 2);
  CHECK(evaluated(256).status == 0);
}

TEST_CASE("no file is named by two outputs, under any name") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  scratch.write("same", "before");
  fs::create_symlink("same", scratch.path() / "link");
  using Words = std::vector<std::string>;
  for (const Words& flags :
       {Words{"evaluate", "--page"}, Words{"evaluate", "--list-inputs"},
        Words{"evaluate", "--placement"}, Words{"plan", "--page"}, Words{"simulate", "--trace"},
        Words{"simulate", "--write-schedule"}, Words{"sweep", "--over", "tp=1", "--page"}}) {
    for (const char* other : {"same", "./same", "link"}) {
      Words words{flags.front(), "llama.yaml", "--out", "same"};
      words.insert(words.end(), flags.begin() + 1, flags.end());
      words.emplace_back(other);
      const Run refused = run(words, scratch);
      CAPTURE(words[words.size() - 2]);
      CHECK(refused.status == 2);
      CHECK(contains(refused.err, "is named twice, by --out and " + words[words.size() - 2]));
      CHECK(scratch.read("same") == "before");
    }
  }
  CHECK(run({"evaluate", "llama.yaml", "--page", "/dev/null", "--out", "/dev/null"}, scratch)
            .status == 0);
}

TEST_CASE("of a file that is no schedule and no list of loads nothing is shown") {
  const Scratch scratch;
  scratch.write("secret", "root:hunter2\n");
  scratch.write("llama.yaml", llama);
  for (const char* setting :
       {"plan.schedule={file: secret}", "training.expert_load={histogram: secret}"}) {
    const Run refused =
        run({"evaluate", contains(setting, "plan") ? "llama.yaml" : "mixtral-8x7b-16-h100", "--set",
             setting},
            scratch);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, "secret:1:1: "));
    CHECK_FALSE(contains(refused.err, "hunter2"));
  }
}

}  // namespace cli_files_test
