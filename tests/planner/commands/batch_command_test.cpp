// Batches of the executable: what they leave, and that no end of theirs loses anything.
#include "planner/commands/batch_command.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>

#include "costmodel/base/json_text.hpp"
#include "planner/commands/commands.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/planner/support/few_plans.hpp"
#include "tests/planner/support/pages.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace batch_command_test {

using nlohmann::json;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

// Two plans, an evaluation, a sweep, a plan that does not fit, and a scenario that is wrong.
void write_scenarios(const Scratch& scratch) {
  std::filesystem::create_directory(scratch.path() / "s");
  const std::string job =
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 8192, precision: bf16}\n" +
      few_plans::if_sanitized;
  scratch.write("s/evaluated.yaml", "command: evaluate\n" + cli::llama);
  scratch.write("s/planned.yaml", job);
  scratch.write("s/swept.yaml", "command: sweep --over tp=1,2,4\n" + cli::llama);
  scratch.write("s/wrong.yaml", "model: llama-3-8\n");
  scratch.write("s/large.yaml",
                program::replaced(program::replaced(job, "llama-3-8b", "llama-3.1-405b"),
                                  "devices: 16", "devices: 1"));
}

// All that a batch left but its journal, which tells times.
std::map<std::string, std::string> left_in(const Scratch& scratch, const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path() / folder)) {
    const std::string name = entry.path().filename();
    if (name != "journal.jsonl") files[name] = scratch.read(folder + "/" + name);
  }
  return files;
}

}  // namespace

TEST_CASE("a batch leaves a report each and an index; what is unchanged is not done again") {
  const Scratch scratch;
  write_scenarios(scratch);
  const auto first = run(words_of("batch s --out r --format json"), scratch);
  CHECK(first.status == 4);
  const json index = json::parse(first.out);
  CHECK(index["format_version"] == costmodel::format_version);
  CHECK(index == json::parse(scratch.read("r/index.json")));
  CHECK(index["counts"]["done"] == 3);
  CHECK(index["counts"]["no plan"] == 1);
  CHECK(index["counts"]["failed"] == 1);
  const json& wrong = index["scenarios"][4];
  CHECK(wrong["name"] == "wrong");
  CHECK(doctest::String(wrong["message"].get<std::string>().c_str()) ==
        doctest::Contains("wrong.yaml:1:8: no model 'llama-3-8'"));
  const auto plan = nlohmann::ordered_json::parse(scratch.read("r/planned.json"));
  CHECK(plan["searched"]["seconds"].is_null());
  CHECK(index["scenarios"][2]["iteration_s"] == plan["plans"][0]["time"]["iteration_s"]);
  CHECK(scratch.read("r/index.html").find("wrong.yaml:1:8") != std::string::npos);
  const auto before = left_in(scratch, "r");
  CHECK(before.size() == 11);  // four reports and their pages, three forms of the index
  for (const char* name : {"evaluated", "planned", "swept", "large"}) {
    CAPTURE(name);
    pages::check_page(before.at(name + std::string(".html")));
    CHECK(pages::has(before.at("index.html"), fmt::format("href=\"./{}.html\"", name)));
  }
  pages::check_evaluation(before.at("planned.html"), plan["plans"][0]);
  CHECK(pages::has(before.at("large.html"), "No plan fits."));

  const auto again = run(words_of("batch s --out r"), scratch);
  CHECK(doctest::String(again.err.c_str()) ==
        doctest::Contains("0 done now, 4 unchanged since they were done, 1 failed"));
  CHECK(pages::has(again.out, "\nwrong: " + wrong["message"].get<std::string>() + "\n"));  // all
  CHECK(left_in(scratch, "r") == before);
  scratch.write("s/wrong.yaml", cli::llama);
  scratch.write("s/evaluated.yaml",
                "command: evaluate --set training.global_batch=128\n" + cli::llama);
  std::filesystem::remove(scratch.path() / "r" / "swept.html");
  const auto mended = run(words_of("batch s --out r"), scratch);
  CHECK(mended.status == 3);  // the large one has no plan
  CHECK(doctest::String(mended.err.c_str()) ==
        doctest::Contains("3 done now, 2 unchanged since they were done, 0 failed"));
  const auto forced = run(words_of("batch s --out r --force --jobs 1"), scratch);
  CHECK(doctest::String(forced.err.c_str()) == doctest::Contains("5 done now, 0 unchanged"));
}

TEST_CASE("simulations, comparisons and explanations go into a batch too") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "s");
  scratch.write("s/a.yaml", "command: simulate\n" + cli::llama);
  scratch.write("s/b.yaml", "command: compare s/a.yaml\n" + cli::llama);
  scratch.write("s/c.yaml", "command: explain\n" + cli::llama);
  const auto done = run(words_of("batch s --out r --format json"), scratch);
  CHECK(done.status == 0);
  CHECK(done.err.find('\r') == std::string::npos);  // no progress where there is no terminal
  const json index = json::parse(done.out);
  CHECK(index["counts"]["done"] == 3);
  const auto trace = json::parse(scratch.read("r/a.json"));
  CHECK(index["scenarios"][0]["iteration_s"] == trace["iteration_s"]);
  CHECK(json::parse(scratch.read("r/b.json"))["scenarios"].size() == 2);
  for (const char* name : {"a", "b", "c"})
    pages::check_page(scratch.read("r/" + std::string(name) + ".html"));
}

// Ten, or two with sanitizers, one of each number of jobs; SHARDPLAN_KILLS in the environment says
// another number. A batch that ends before it is killed is looked at, and begun anew.
TEST_CASE("killed at any moment, a batch ends with the same bytes") {
  const char* const wanted = std::getenv("SHARDPLAN_KILLS");
  const int kills = wanted == nullptr ? (sanitized ? 2 : 10) : std::atoi(wanted);
  REQUIRE(kills > 0);
  const Scratch scratch;
  write_scenarios(scratch);
  const auto begun = std::chrono::steady_clock::now();
  const auto whole = run(words_of("batch s --out whole --jobs 1"), scratch);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
  const auto expected = left_in(scratch, "whole");
  std::minstd_rand moments(20);
  std::uniform_real_distribution<double> moment(0, took.count());
  int killed = 0, ended = 0;
  while (killed < kills && ended <= 10 * kills) {
    const char* const jobs = killed % 2 == 0 ? "1" : "2";
    const pid_t child =
        program::start(words_of("batch s --out r --jobs " + std::string(jobs)), scratch);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(moment(moments)));
    kill(child, SIGKILL);
    if (program::finish(child, scratch).status != whole.status) {
      ++killed;
      continue;
    }
    ++ended;
    CHECK(left_in(scratch, "r") == expected);
    std::filesystem::remove_all(scratch.path() / "r");
  }
  CHECK(killed == kills);
  MESSAGE(killed << " killed, " << ended << " ended before");
  const auto last = run(words_of("batch s --out r"), scratch);
  CHECK(last.status == whole.status);
  CHECK(left_in(scratch, "r") == expected);
}

TEST_CASE("shards of a batch, one of them killed and begun again, join into the index of one run") {
  const Scratch scratch;
  write_scenarios(scratch);
  const auto complete = run(words_of("batch s --out complete"), scratch);
  const auto shard = [](int k) { return words_of(fmt::format("batch s --out r --shard {}/3", k)); };
  const pid_t killed = program::start(shard(2), scratch);
  kill(killed, SIGKILL);
  program::finish(killed, scratch);
  for (const int k : {3, 2, 1}) {
    const auto part = run(shard(k), scratch);
    CHECK(doctest::String(part.err.c_str()) == doctest::Contains("makes the index"));
  }
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "r" / "index.json"));
  const auto joined = run(words_of("batch s --out r"), scratch);
  CHECK(joined.status == complete.status);
  CHECK(joined.out == complete.out);
  CHECK(doctest::String(joined.err.c_str()) ==
        doctest::Contains("0 done now, 4 unchanged since they were done"));
  auto left = left_in(scratch, "r");
  CHECK(std::erase_if(left, [](const auto& file) { return file.first.ends_with(".jsonl"); }) == 3);
  CHECK(left == left_in(scratch, "complete"));
}

TEST_CASE("an evaluated plan that does not fit is in the index, with its figures") {
  const Scratch scratch;
  scratch.write("large.yaml",
                "command: evaluate\n" + program::replaced(cli::llama, "tp: 2", "tp: 1"));
  const auto large = run(words_of("batch large.yaml --out r --format json --set plan.dp=8"
                                  " --set plan.micro_batch=8"),
                         scratch);
  CHECK(large.status == 3);
  const json row = json::parse(large.out)["scenarios"][0];
  CHECK(row["status"] == "no plan");
  CHECK(row["message"] == "does not fit in memory");
  CHECK(row["iteration_s"].is_number());
  CHECK(row["peak_bytes"] > row["capacity_bytes"]);
}

TEST_CASE("--fail-fast begins nothing after a failure, and wrong usage is told") {
  const Scratch scratch;
  write_scenarios(scratch);
  const auto stopped =
      run(words_of("batch s/wrong.yaml s/planned.yaml --out r --fail-fast --jobs 1 --format csv"),
          scratch);
  CHECK(stopped.status == 4);
  CHECK(doctest::String(stopped.out.c_str()) == doctest::Contains("planned,plan,not done,"));
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "r" / "planned.json"));
  const auto missing = run(words_of("batch s"), scratch);
  CHECK(missing.status == 2);
  CHECK(doctest::String(missing.err.c_str()) == doctest::Contains("add --out reports"));
  CHECK(run(words_of("batch none.yaml --out r"), scratch).status == 2);
  CHECK(run(words_of("batch s --out s/wrong.yaml"), scratch).status == 2);
}

TEST_CASE("a scenario that takes too long, or too much memory, fails alone") {
  const Scratch scratch;
  write_scenarios(scratch);
  std::filesystem::create_directory(scratch.path() / "w");
  // A model that nobody ever writes to the end of its pipe.
  scratch.write("w/waits.yaml", program::replaced(cli::llama, "llama-3-8b", "./pipe.yaml"));
  REQUIRE(mkfifo((scratch.path() / "w" / "pipe.yaml").c_str(), 0600) == 0);
  const auto late = run(words_of("batch w/waits.yaml --out r --format json --timeout 1s"), scratch);
  CHECK(late.status == 4);
  CHECK(json::parse(late.out)["scenarios"][0]["message"] ==
        "took longer than 1 s; give it more: --timeout, or less to search");
  CHECK(run(words_of("batch s/evaluated.yaml --out r --timeout 10min"), scratch).status == 0);
  if (!sanitized) {
    std::string pattern;
    for (int i = 0; i < 20'000; ++i) pattern += "M*-";
    scratch.write("w/large.yaml",
                  "model: {kind: hybrid, hidden: 512, heads: 8, ffn_hidden: 2048, vocab: 32000, "
                  "ssm_groups: 1, layer_pattern: \"" +
                      pattern +
                      "\"}\ncluster: {base: dgx-h100, devices: 64}\n"
                      "training: {global_batch: 64, sequence: 8192, precision: bf16}\n");
    const auto large =
        run(words_of("batch w/large.yaml s/evaluated.yaml --out r2 --format json --memory 64MiB"),
            scratch);
    CHECK(large.status == 4);
    const json two = json::parse(large.out)["scenarios"];
    CHECK(pages::has(two[0]["message"].get<std::string>(), "memory that this process may use"));
    CHECK(two[1]["status"] == "done");
  }
  for (const char* wrong : {"--timeout 0", "--timeout soon", "--memory 1KiB", "--memory much"})
    CHECK(run(words_of(fmt::format("batch s --out r3 {}", wrong)), scratch).status == 2);
}

TEST_CASE("a batch hands --allow-path on") {
  const Scratch scratch;
  for (const char* folder : {"models", "s"})
    std::filesystem::create_directory(scratch.path() / folder);
  scratch.write("models/mine.yaml", "base: llama-3-8b\n");
  scratch.write("s/a.yaml", "command: evaluate\n" +
                                program::replaced(cli::llama, "llama-3-8b", "../models/mine.yaml"));
  const auto refused = run(words_of("batch s --out r --format json"), scratch);
  CHECK(refused.status == 4);
  const json row = json::parse(refused.out)["scenarios"][0];
  CHECK(pages::has(row["message"].get<std::string>(), "lies outside of the scenario's folder"));
  CHECK(run(words_of("batch s --out r --allow-path models"), scratch).status == 0);
}

namespace {

// In a folder of reports of a.yaml, after `change`: the figures are those of before, the file
// `victim` is untouched, and so many reports were made anew.
void check_changed(const Scratch& scratch, const char* what, const std::function<void()>& change,
                   int done) {
  CAPTURE(what);
  namespace fs = std::filesystem;
  const auto folder = [&](const char* name) { return scratch.path() / name; };
  if (!fs::exists(folder("made"))) {
    run(words_of("batch s --out o --command evaluate --quiet"), scratch);
    fs::rename(folder("o"), folder("made"));
  }
  fs::remove_all(folder("o"));
  fs::copy(folder("made"), folder("o"), fs::copy_options::recursive);
  const auto before = left_in(scratch, "o");
  scratch.write("victim", "precious");
  change();
  const pid_t child = program::start(words_of("batch s --out o --command evaluate"), scratch);
  const auto again = program::finish(child, scratch, std::chrono::seconds(60));
  CHECK(again.status == 0);
  CHECK(pages::has(again.err, fmt::format("{} done now, {} unchanged", done, 1 - done)));
  CHECK(left_in(scratch, "o") == before);
  CHECK(scratch.read("victim") == "precious");
}

}  // namespace

TEST_CASE(
    "a folder of reports is data like any other: damaged it is done again, forged not believed") {
  namespace fs = std::filesystem;
  const Scratch scratch;
  fs::create_directory(scratch.path() / "s");
  scratch.write("s/a.yaml", cli::llama);
  const auto path = [&](const std::string& name) { return scratch.path() / "o" / name; };
  const auto journal = [&](const std::string& text) {
    scratch.write("o/journal.jsonl",
                  program::replaced(scratch.read("o/journal.jsonl"), "\"inputs\":{", text));
  };
  const auto replace = [&](const std::string& name, const std::function<void()>& put) {
    return [&, name, put] {
      fs::remove(path(name));
      put();
    };
  };
  const auto pipe = [&](const std::string& name) {
    return replace(name, [&, name] { REQUIRE(mkfifo(path(name).c_str(), 0600) == 0); });
  };
  const auto link = [&](const std::string& name, const std::string& to) {
    return replace(name, [&, name, to] { fs::create_symlink(to, path(name)); });
  };
  const auto check = [&](const char* what, const std::function<void()>& change, int done) {
    check_changed(scratch, what, change, done);
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  check(
      "nothing", [] {}, 0);
  check(
      "a row in the journal", [&] { journal("\"row\":{\"iteration_s\":1e-9},\"inputs\":{"); }, 0);
  check(
      "a deep row", [&] { journal("\"row\":" + deep + ",\"inputs\":{"); }, 1);
  check(
      "a device among the inputs", [&] { journal("\"inputs\":{\"/dev/zero\":\"0\","); }, 1);
  check(
      "a pipe among them",
      [&] {
        if (!fs::exists(scratch.path() / "f"))
          REQUIRE(mkfifo((scratch.path() / "f").c_str(), 0600) == 0);
        journal("\"inputs\":{\"f\":\"0\",");
      },
      1);
  check(
      "inputs of another shape", [&] { journal("\"inputs\":7,\"x\":{"); }, 1);
  check(
      "no bytes", [&] { scratch.write("o/journal.jsonl", "\0\xff"); }, 1);
  check(
      "an edited page", [&] { scratch.write("o/a.html", "edited"); }, 1);
  check(
      "an edited report", [&] { scratch.write("o/a.json", "{}"); }, 1);
  for (const char* name : {"journal.jsonl", "a.json", "a.html", "index.json"}) {
    CAPTURE(name);
    const int done = name == std::string("index.json") ? 0 : 1;
    check("a pipe", pipe(name), done);
    check("a link to a device", link(name, "/dev/zero"), done);
    check("a link to a file", link(name, "../victim"), done);
    check("a second name of a file",
          replace(name, [&] { fs::create_hard_link(scratch.path() / "victim", path(name)); }),
          done);
  }
}

TEST_CASE("names at the file system's limit, and rings of links, fail alone") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "s");
  scratch.write("s/b.yaml", cli::llama);
  scratch.write("s/" + std::string(238, 'L') + ".yaml", cli::llama);
  scratch.write("s/" + std::string(251, 'M') + ".yml",
                cli::llama);  // its report's name is too long
  std::filesystem::create_symlink("ring", scratch.path() / "s/ring");
  const auto all = run(words_of("batch s/* --out o --command evaluate --format json"), scratch);
  CHECK(all.status == 4);
  const json index = json::parse(all.out);
  CHECK(index["counts"]["done"] == 2);
  CHECK(index["counts"]["failed"] == 2);
  const auto folder =
      run({"batch", "s/b.yaml", "--out", std::string(300, 'a'), "--quiet"}, scratch);
  CHECK(folder.status == 2);
  CHECK(pages::has(folder.err, "aaa: is not a folder and cannot be made one: File name too long"));
}

}  // namespace batch_command_test
