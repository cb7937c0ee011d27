// Names and titles that hold terminal escapes, markup, formulas, line ends and bytes that are not
// UTF-8, through every command in every format: each output stays valid in its format.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"

namespace hostile_names_test {

using fixtures::contains;
using program::Run;
using program::run;
using program::Scratch;

namespace {

// In YAML's double quotes.
const std::string title =
    "\"=1+2 \\e[31mx\\n<script>alert(1)</script>\\r|a\\t*b* `c` [d](http://e)"
    " \\u009b31m \\u202e \\x7f & ' \\\" $(touch pwned)\"";

// A file's name may hold any byte but '/' and 0.
const std::string stem = "=1,n\xff\n<script>\x1b[31m|'`touch pwned`\"";

struct Output {
  std::string what, format, text;
};

// Valid UTF-8 without control characters but line ends: what the escapes would leave as it is.
void check_plain(const std::string& text) {
  const std::string seen = costmodel::printable_lines(text);
  CHECK(seen == text);
  CHECK(text.find('\t') == std::string::npos);
}

// The number of fields of each record of CSV.
std::vector<std::size_t> fields(const std::string& csv) {
  std::vector<std::size_t> counts;
  std::size_t count = 1;
  bool quoted = false;
  for (const char c : csv) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++count;
    if (c == '\n' && !quoted) counts.push_back(std::exchange(count, 1));
  }
  return counts;
}

void check_csv(const std::string& csv) {
  const auto counts = fields(csv);
  REQUIRE(counts.size() > 1);
  CHECK(std::count(counts.begin(), counts.end(), counts.front()) ==
        static_cast<std::ptrdiff_t>(counts.size()));
  for (const char* begin : {"\n=", ",=", ",\"=", "\n\"="}) CHECK_FALSE(contains(csv, begin));
}

// Rows of a table have as many unescaped bars as its head.
void check_markdown(const std::string& text) {
  CHECK_FALSE(contains(text, "<script"));
  CHECK_FALSE(contains(text, "]("));
  std::size_t bars = 0;
  for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    std::string line = text.substr(from, text.find('\n', from) - from);
    if (!line.starts_with("|")) {
      bars = 0;
      continue;
    }
    line = program::replaced(program::replaced(line, "\\\\", ""), "\\|", "");
    const auto own = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    CHECK((bars == 0 || own == bars));
    bars = own;
  }
}

void check(const Output& output) {
  CAPTURE(output.what);
  CAPTURE(output.format);
  const std::string& text = output.text;
  CHECK(text.size() > 0);
  check_plain(text);
  if (output.format == "json") CHECK(nlohmann::json::accept(text));
  if (output.format == "yaml") CHECK_NOTHROW(costmodel::parse_yaml(text, "out.yaml"));
  if (output.format == "csv") check_csv(text);
  if (output.format == "md") check_markdown(text);
  if (output.format == "html" || output.format == "svg") CHECK_FALSE(contains(text, "<script"));
}

void check_messages(const std::string& err) {
  check_plain(err);
  for (std::size_t from = 0; from < err.size();) {
    const std::size_t end = std::min(err.find('\n', from), err.size());
    CHECK(end - from <= costmodel::longest_message);
    from = end + 1;
  }
}

// Runs a command in each format; returns what it printed.
std::vector<Output> outputs(std::vector<std::string> words, const std::string& formats,
                            const Scratch& scratch, int status = 0) {
  std::vector<Output> all;
  words.insert(words.end(), {"--config-path", "configs", "--format", ""});
  for (const std::string& format : program::words_of(formats)) {
    words.back() = format;
    const Run done = run(words, scratch);
    CAPTURE(words.front());
    CAPTURE(format);
    CAPTURE(done.err);
    CHECK(done.status == status);
    check_messages(done.err);
    check({words.front(), format, done.out});
    all.push_back({words.front(), format, done.out});
  }
  return all;
}

const std::string tiers = "tiers:\n  - {name: " + title +
                          ", devices: 8, bandwidth_bytes_per_s: 7.1 GB/s, latency_s: 1 us}\n";

// A folder of configurations with hostile titles and file names.
void write_configs(const Scratch& scratch) {
  const auto config = [&](const std::string& kind, const std::string& text) {
    std::filesystem::create_directories(scratch.path() / "configs" / kind);
    scratch.write("configs/" + kind + "/" + stem + ".yaml", text + "title: " + title + "\n");
  };
  config("models", "base: gpt-tiny\n");
  config("devices", "base: cpu-generic\n");
  config("clusters", "device: cpu-generic\ndevices: 8\ndevices_per_node: 8\n" + tiers);
  config("stacks", "base: shardplan-cpu\n");
}

const std::string tiny =
    "model: {base: gpt-tiny, title: " + title + "}\n" +
    "cluster: {base: laptop-cpu, devices: 4, title: " + title + "}\n" +
    "training: {global_batch: 16, sequence: 128, precision: fp32, stack: shardplan-cpu}\n"
    "plan: {tp: 1, pp: 2, dp: 2, micro_batch: 2}\n";

// Two kinds of devices in groups of hostile names.
const std::string groups =
    "model: {base: llama-3.2-1b, title: " + title + "}\n" + "cluster:\n  title: " + title +
    "\n  groups:\n    - {name: " + title + ", base: dgx-h100, devices: 2}\n" +
    "    - {name: a100, base: dgx-a100, devices: 2}\n  join: {name: " + title +
    ", bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n" +
    "training: {global_batch: 8, sequence: 1024, precision: bf16, stack: megatron-core-2025}\n";

// One run that is predicted, one that is not.
std::string evidence() {
  const std::string run =
      ", cluster: {base: dgx-h100, devices: 8}, training: {global_batch: 64, sequence: 8192, "
      "precision: bf16, stack: megatron-core-2025}, plan: {tp: 2, pp: 2, dp: 2, micro_batch: 1, "
      "sequence_parallel: true}, measured: {iteration_s: 9}, where: " +
      title + ", notes: " + title + "}\n";
  return "source: {title: " + title + ", ref: " + title + "}\nruns:\n" + "- {id: " + title +
         ", model: llama-3-8b" + run + "- {id: \"@2\", model: " + title + run;
}

}  // namespace

TEST_CASE("a scenario of hostile names: every command, every format") {
  const Scratch scratch;
  write_configs(scratch);
  scratch.write(stem + ".yaml", tiny);
  const std::string file = stem + ".yaml";
  outputs({"evaluate", file}, "text json yaml md", scratch);
  outputs({"plan", file, "--strategy", "both"}, "text json yaml csv md", scratch);
  outputs({"explain", file}, "text json md", scratch);
  outputs({"sweep", file, "--over", "tp=1,=2,\x1b[m|<b>\n,2"}, "text json csv md", scratch, 2);
  outputs({"simulate", file, "--trace", "t.json"}, "text json", scratch);
  check({"trace", "json", scratch.read("t.json")});
  outputs({"evaluate", file, "--placement", "p.json"}, "json", scratch);
  check({"placement", "json", scratch.read("p.json")});
  const std::string small = "cluster.device={base: cpu-generic, memory: {bytes: 1 MiB}}";
  outputs({"plan", file, "--set", small}, "text json md", scratch, 3);
}

TEST_CASE("a run of hostile names: every format") {
  const auto folder = std::filesystem::path(SHARDPLAN_EXECUTABLE).parent_path();
  if (!std::filesystem::exists(folder / "shardplan-run")) return;  // a build without the runtime
  const Scratch scratch;
  write_configs(scratch);
  scratch.write(stem + ".yaml", tiny);
  outputs({"run", stem + ".yaml", "--backend", "emulated", "--trace", "t.json"}, "text json",
          scratch);
  check({"trace", "json", scratch.read("t.json")});
}

TEST_CASE("groups of hostile names: every command, every format") {
  const Scratch scratch;
  write_configs(scratch);
  scratch.write("groups.yaml", groups);
  outputs({"plan", "groups.yaml", "--placement", "p.yaml"}, "text json yaml csv md", scratch);
  check({"placement", "yaml", scratch.read("p.yaml")});
  scratch.write("found.yaml", run({"plan", "groups.yaml", "--format", "yaml"}, scratch).out);
  outputs({"evaluate", "found.yaml"}, "text json yaml md", scratch);
  outputs({"explain", "found.yaml"}, "text json md", scratch);
  outputs({"simulate", "found.yaml"}, "text json", scratch);
}

TEST_CASE("evidence of hostile ids: every format") {
  const Scratch scratch;
  write_configs(scratch);
  const std::string file = stem + ".yaml";
  scratch.write(file, evidence());
  scratch.write("notes.md", "# Notes\n\nA line\x1b[31m.\n");
  outputs({"validate", file, "--rows", "--notes", "notes.md"}, "text json csv md html svg",
          scratch);
  outputs({"validate", file, "--against-planner", "--rows"}, "text json csv md", scratch);
}

TEST_CASE("configurations of hostile names and titles are listed in every format") {
  const Scratch scratch;
  write_configs(scratch);
  for (const char* kind : {"models", "devices", "clusters", "stacks"}) {
    for (const Output& output : outputs({"list", kind}, "text json csv md", scratch))
      CHECK(contains(output.text, "=1,n"));
  }
}

TEST_CASE("imports of hostile names: every format") {
  const Scratch scratch;
  write_configs(scratch);
  scratch.write(stem + ".json",
                "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
                "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 512, "
                "\"max_position_embeddings\": 128}");
  outputs({"import", "hf", stem + ".json"}, "text json yaml", scratch);
  scratch.write(stem + ".log",
                "# Collective test starting: all_reduce_perf\n"
                "#  Rank  0 Group  0 Pid 1 on a\x1b[1m device  0 [0x00] N\xff\"<b>\n"
                "# size count type redop root time algbw busbw #wrong\n"
                "1024 256 float\x1b sum -1 10.0 0.1 0.1 0\n");
  outputs({"import", "nccl-tests", stem + ".log"}, "text json yaml", scratch);
}

TEST_CASE("a launch script runs nothing that a name holds") {
  const Scratch scratch;
  write_configs(scratch);
  const std::string file = "a\ntouch pwned\n'`touch pwned`$(touch pwned).yaml";
  scratch.write(file, cli::llama);
  const auto scripts = outputs({"export", file, "--to", "megatron"}, "text json", scratch);
  const std::string& script = scripts.front().text;
  const std::string head = script.substr(0, script.find("set -euo pipefail"));
  for (std::size_t from = 0; from < head.size(); from = head.find('\n', from) + 1)
    CHECK((head[from] == '#' || head[from] == '\n'));
  CHECK_FALSE(contains(script.substr(head.size()), "pwned"));
}

TEST_CASE("what a note suggests to type is one word of the shell") {
  const Scratch scratch;
  scratch.write("a b;id.yaml", tiny.substr(0, tiny.find("plan:")));
  const Run done = run({"simulate", "a b;id.yaml"}, scratch);
  CHECK(done.status == 0);
  CHECK(contains(done.err, "shardplan plan 'a b;id.yaml' --format yaml"));
}

TEST_CASE("a title in any script is printed as it is") {
  const Scratch scratch;
  const std::string set = "model={base: gpt-tiny, title: \"modèle 大模型 a_b\"}";
  for (const char* format : {"text", "md"}) {
    const Run done = run({"evaluate", "tiny-gpt-cpu", "--set", set, "--format", format}, scratch);
    CHECK(contains(done.out, "modèle 大模型 a_b (875.3 k parameters)"));
  }
}

TEST_CASE("messages quote a short piece of what is wrong, whatever is given") {
  const Scratch scratch;
  write_configs(scratch);
  const std::string huge(100'000, 'x'), hostile = stem + huge;
  scratch.write("secret", "root:x:0:0:root:/root:/bin/bash\nkey: [" + huge + "\n");
  scratch.write("plain", huge);
  scratch.write("key.yaml", hostile + ": 1\n");
  scratch.write("anchor.yaml", "model: *" + huge + "\n");
  const std::vector<std::vector<std::string>> all{
      {hostile},
      {"evaluate", hostile},
      {"evaluate", "key.yaml"},
      {"evaluate", "anchor.yaml"},
      {"evaluate", "tiny-gpt-cpu", "--format", hostile},
      {"evaluate", "tiny-gpt-cpu", "--" + huge},
      {"evaluate", "tiny-gpt-cpu", "--color", hostile},
      {"evaluate", "tiny-gpt-cpu", "--config-path", hostile},
      {"evaluate", "tiny-gpt-cpu", "--out", hostile},
      {"evaluate", "tiny-gpt-cpu", "--set", hostile},
      {"evaluate", "tiny-gpt-cpu", "--set", hostile + "=1"},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.tp=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan." + huge + "=1"},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.schedule=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.recompute=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.rank_order=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.sequence_parallel=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "plan.stages=[{tp: 1, group: " + huge + "}]"},
      {"evaluate", "tiny-gpt-cpu", "--set", "training.stack=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "model=" + huge},
      {"evaluate", "tiny-gpt-cpu", "--set", "model=./secret"},
      {"evaluate", "tiny-gpt-cpu", "--set", "model=./plain"},
      {"evaluate", "tiny-gpt-cpu", "--set", "model={base: ./plain}"},
      {"evaluate", "tiny-gpt-cpu", "--set", "cluster.device=./secret"},
      {"evaluate", "tiny-gpt-cpu", "--set", "model.hidden=" + huge},
      {"plan", "tiny-gpt-cpu", "--strategy", hostile},
      {"plan", "tiny-gpt-cpu", "--top", hostile},
      {"plan", "tiny-gpt-cpu", "--set", "search.zero=[" + huge + "]"},
      {"sweep", "tiny-gpt-cpu", "--over", hostile},
      {"sweep", "tiny-gpt-cpu", "--over", huge + "=1"},
      {"list", hostile},
      {"export", "tiny-gpt-cpu", "--to", hostile},
      {"import", hostile, "plain"},
      {"import", "hf", "secret"},
      {"import", "nccl-tests", "plain"},
      {"validate", "secret"},
      {"validate", "plain"},
  };
  for (const auto& words : all) {
    CAPTURE(words.back().substr(0, 80));
    const Run failed = run(words, scratch);
    CHECK(failed.status == 2);
    CHECK(failed.out == "");
    check_messages(failed.err);
    CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') == 1);
    CHECK(contains(failed.err, "; "));
    CHECK_FALSE(contains(failed.err, huge.substr(0, 400)));
    CHECK_FALSE(contains(failed.err, "root:x"));
  }
}

}  // namespace hostile_names_test
