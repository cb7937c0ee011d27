// The command line as users see it: help, reports and errors, frozen in tests/golden/.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/golden.hpp"
#include "tests/run_program.hpp"

using program::masked;
using program::Run;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

const std::string llama =
    "model: llama-3-8b\n"
    "cluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 8192, precision: bf16, stack: megatron-core-2025}\n"
    "plan: {tp: 2, pp: 2, dp: 4, micro_batch: 2, sequence_parallel: true, zero: 1}\n";

std::string heading(const std::string& command) { return "$ shardplan " + command + "\n"; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Which configurations there are is for `shardplan list`; here only that some are named.
std::string without_names(std::string text) {
  for (const auto* kind : {"no model '", "no cluster '", "no device '", "no stack '"}) {
    const auto known = text.find("known: ");
    if (contains(text, kind) && known != std::string::npos)
      text = text.substr(0, known) + "known: ...\n";
  }
  return text;
}

}  // namespace

TEST_CASE("help of the program and of every command is frozen") {
  const Scratch scratch;
  std::string text;
  for (const std::string command : {"", "plan ", "evaluate ", "explain ", "sweep ", "simulate ",
                                    "import ", "export ", "list "}) {
    const Run help = run(words_of(command + "--help"), scratch);
    CHECK(help.status == 0);
    CHECK(help.err == "");
    CHECK(contains(help.out, "usage: shardplan "));
    text += heading(command + "--help") + help.out + "\n";
  }
  CHECK(golden::compare("help.txt", text) == "");
}

TEST_CASE("every command that help names has a help of its own") {
  const Scratch scratch;
  const std::string help = run({"--help"}, scratch).out;
  const auto from = help.find("commands:\n") + 10, to = help.find("\nflags:");
  for (const auto& line : golden::lines_of(help.substr(from, to - from)))
    CHECK(run({words_of(line).front(), "--help"}, scratch).status == 0);
}

TEST_CASE("reports are frozen") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string selene =
      "gpt3-175b-selene --set plan.tp=8 --set plan.pp=16 --set plan.recompute=full";
  const std::string limits =
      " --set search.max_tp=8 --set search.max_vpp=2 --set search.max_micro_batch=2";
  struct Report {
    std::string file, command;
  };
  const std::vector<Report> reports{
      {"plan.txt", "plan gpt3-175b-selene --top 3" + limits},
      {"plan.md", "plan gpt3-175b-selene --top 3 --format md" + limits},
      {"plan.csv", "plan gpt3-175b-selene --format csv" + limits},
      {"plan.yaml", "plan gpt3-175b-selene --format yaml" + limits},
      {"plan_nothing_fits.txt",
       "plan llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={}"},
      {"evaluate.txt", "evaluate " + selene},
      {"evaluate.md", "evaluate llama.yaml --format md"},
      {"evaluate_tiny.txt", "evaluate tiny-gpt-cpu"},
      {"evaluate_llama.txt", "evaluate llama.yaml"},
      {"explain.txt", "explain llama.yaml"},
      {"explain.md", "explain tiny-gpt-cpu --format md"},
      {"explain_zero_bubble.txt",
       "explain llama.yaml --set training.stack=zero-bubble-fork --set plan.tp=1 --set plan.pp=8 "
       "--set plan.dp=2 --set plan.micro_batch=1 --set plan.sequence_parallel=false "
       "--set plan.schedule=zero-bubble-h1"},
      {"simulate_zero_bubble.txt",
       "simulate llama.yaml --set training.stack=zero-bubble-fork --set plan.tp=2 --set plan.pp=4 "
       "--set plan.dp=2 --set plan.micro_batch=4 --set plan.schedule=zero-bubble-v"},
      {"simulate.txt", "simulate tiny-gpt-cpu"},
      {"simulate_llama.txt",
       "simulate llama.yaml --set plan.vpp=2 --set plan.pp=4 --set plan.dp=2"},
      {"sweep.txt", "sweep llama.yaml --set plan.dp=auto --over tp=1,2,3,4 --over micro_batch=1,2"},
      {"sweep.csv",
       "sweep llama.yaml --set plan.dp=auto --over tp=2,3 --over training.sequence=4096,8192 "
       "--format csv"},
      {"sweep.md", "sweep tiny-gpt-cpu --over micro_batch=1,2,4,8 --format md"},
  };
  for (const auto& report : reports) {
    CAPTURE(report.command);
    const Run done = run(words_of(report.command), scratch);
    CHECK(done.status == (report.file == "plan_nothing_fits.txt" ? 3 : 0));
    CHECK(golden::compare("report_" + report.file, masked(done.err + done.out)) == "");
  }
}

namespace {

struct Fault {
  std::string command;
  std::string file = {};  // its text is faulty.yaml, when there is any
};

const std::string head = "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n";
const std::string training = "training: {global_batch: 64, sequence: 8192, precision: bf16}\n";

std::string with_tier(const std::string& tier) {
  return "model: llama-3-8b\ncluster:\n  device: h100-sxm5-80gb\n  devices: 8\n  tiers:\n    - " +
         tier + "\n" + training;
}

const std::vector<Fault> faults{
    // The command line.
    {""},
    {"plaan llama.yaml"},
    {"plan"},
    {"evaluate llama.yaml llama.yaml"},
    {"import hf"},
    {"evaluate llama.yaml --formt json"},
    {"evaluate llama.yaml --format"},
    {"evaluate llama.yaml --format csv"},
    {"evaluate llama.yaml --format pdf"},
    {"evaluate llama.yaml --top 3"},
    {"plan llama.yaml --top none"},
    {"evaluate llama.yaml --color sometimes"},
    {"evaluate llama.yaml --config-path nowhere"},
    {"evaluate llama.yaml --out nowhere/report.txt"},
    {"evaluate llama.yaml --out folder"},
    {"list modls"},
    {"export llama.yaml"},
    {"export llama.yaml --to megatrn"},
    {"import tf config.json"},
    {"sweep llama.yaml"},
    // --set and --over.
    {"evaluate llama.yaml --set plan.tp"},
    {"evaluate llama.yaml --set =8"},
    {"evaluate llama.yaml --set plan..tp=8"},
    {"evaluate llama.yaml --set plan.tp="},
    {"evaluate llama.yaml --set plan.tp.x=8"},
    {"evaluate llama.yaml --set plan.tp=[1"},
    {"sweep llama.yaml --over tp"},
    {"sweep llama.yaml --over tp="},
    {"sweep llama.yaml --over tp=1,,2"},
    {"sweep llama.yaml --over tpp=1,2"},
    // Files.
    {"evaluate missing.yaml"},
    {"evaluate gpt3-175b-selen"},
    {"evaluate nowhere/missing.yaml"},
    {"evaluate folder"},
    {"evaluate faulty.yaml", " "},
    {"evaluate faulty.yaml", "model: {layers: [1, 2"},
    {"evaluate faulty.yaml", "model: \"no end\n"},
    {"evaluate faulty.yaml", "\tmodel: gpt2\n"},
    {"evaluate faulty.yaml", std::string("\x7f"
                                         "ELF\2\1\1\0\0\xff\xfe\x80",
                                         12)},
    {"evaluate faulty.yaml", "a: 1\n---\nb: 2\n"},
    {"evaluate faulty.yaml", "model: gpt2\nmodel: gpt2\n"},
    {"evaluate faulty.yaml", "- 1\n- 2\n"},
    {"evaluate faulty.yaml", "model: " + std::string(300, '[') + std::string(300, ']') + "\n"},
    {"evaluate faulty.yaml", "model: *nobody\n"},
    {"import hf faulty.yaml", "a: 1\n"},
    {"import hf faulty.yaml", "{\"model_type\": \"lama\", \"hidden_size\": 64}\n"},
    {"import hf faulty.yaml", "{\"model_type\": \"mixtral\", \"hidden_size\": 64}\n"},
    // Names.
    {"evaluate faulty.yaml", "modle: gpt2\n" + head + training},
    {"evaluate faulty.yaml", head},
    {"evaluate llama.yaml --set model=llama-3-8bb"},
    {"evaluate llama.yaml --set model=no-such.yaml"},
    {"evaluate llama.yaml --set model=base-1.yaml"},
    {"evaluate llama.yaml --set cluster=dgx-h1000"},
    {"evaluate llama.yaml --set cluster.device=rtx-409"},
    {"evaluate llama.yaml --set training.stack=megatron-core-202"},
    {"evaluate llama.yaml --set training.precision=bf61"},
    {"evaluate llama.yaml --set plan.schedule=interleavd"},
    {"evaluate llama.yaml --set plan.schedule=dualpipe"},
    {"evaluate llama.yaml --set plan.schedule=zero-bubble-h1"},
    {"evaluate llama.yaml --set plan.schedule=zero-bubble-h1 --set plan.vpp=2 "
     "--set training.stack=zero-bubble-fork"},
    {"export llama.yaml --to megatron --set plan.schedule=zero-bubble-h2 "
     "--set training.stack=zero-bubble-fork"},
    {"evaluate llama.yaml --set plan.recompute=ful"},
    {"evaluate llama.yaml --set plan.tpp=2"},
    {"evaluate llama.yaml --set training.batch=2"},
    {"evaluate llama.yaml --set plan.rank_order=tp-pp-dp"},
    {"evaluate llama.yaml --set model.kind=moe"},
    {"plan llama.yaml --set search.max_ttp=8"},
    {"plan llama.yaml --set search.recompute=[none,al]"},
    {"plan llama.yaml --set search.zero={a:\tb}"},
    {"plan llama.yaml --set search.memory_margin=0.95"},
    {"evaluate llama.yaml --set plan.stage_layers=auto"},
    // Numbers.
    {"evaluate llama.yaml --set plan.tp=-2"},
    {"evaluate llama.yaml --set plan.tp=2.5"},
    {"evaluate llama.yaml --set plan.tp=nan"},
    {"evaluate llama.yaml --set plan.tp=99999999999999999999"},
    {"evaluate llama.yaml --set cluster.devices=1000000000"},
    {"evaluate llama.yaml --set model.layers=-1"},
    {"evaluate llama.yaml --set model.hidden=huge"},
    {"evaluate llama.yaml --set plan.zero=4"},
    {"evaluate llama.yaml --set plan.sequence_parallel=maybe"},
    {"evaluate llama.yaml --set model.dropout=1.5"},
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: 80 GiB, latency_s: 2 us}")},
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: 80 GB/s, latency_s: 2 parsecs}")},
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: .nan, latency_s: 2 us}")},
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: .inf, latency_s: 2 us}")},
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: -1 GB/s, latency_s: 2 us}")},
    {"evaluate faulty.yaml", head + "training: {global_batch: 64, sequence: 8192}\nplan: 3\n"},
    {"evaluate faulty.yaml",
     "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8, device: device.yaml}\n" + training},
    // Rules.
    {"evaluate llama.yaml --set training.global_batch=63"},
    {"evaluate llama.yaml --set plan.micro_batch=3"},
    {"evaluate llama.yaml --set plan.dp=3"},
    {"evaluate llama.yaml --set plan.tp=16 --set plan.pp=16 --set plan.dp=16"},
    {"evaluate llama.yaml --set plan.pp=65536 --set plan.vpp=65536"},
    {"evaluate llama.yaml --set model.heads=24 --set model.head_dim=128 --set plan.tp=16 --set "
     "plan.pp=1 --set plan.dp=1"},
    {"evaluate llama.yaml --set model.heads=71"},
    {"evaluate llama.yaml --set model.kv_heads=5"},
    {"evaluate llama.yaml --set model=gpt2"},
    {"evaluate llama.yaml --set plan.stage_layers=[16,15]"},
    {"evaluate llama.yaml --set plan.stage_layers=[32]"},
    {"evaluate llama.yaml --set plan.pp=8 --set plan.dp=1 --set plan.vpp=3"},
    {"evaluate llama.yaml --set plan.vpp=2 --set plan.schedule=gpipe"},
    {"evaluate llama.yaml --set plan.zero=1 --set training.stack=megatron-2021 --set "
     "plan.sequence_parallel=false"},
    {"evaluate llama.yaml --set plan.recompute=selective --set training.stack=megatron-2021"
     " --set plan.zero=0 --set plan.sequence_parallel=false"},
    {"evaluate llama.yaml --set plan.cp=2"},
    {"evaluate llama.yaml --set plan.cp=2 --set plan.dp=2 --set training.stack=megatron-2022"},
    {"evaluate llama.yaml --set plan.cp_comm=ulysses"},
    {"evaluate llama.yaml --set plan.ep=2"},
    {"evaluate llama.yaml --set plan.tp=1000000 --set plan.pp=1000000 --set plan.dp=1000000 --set "
     "plan.cp=1000000"},
    {"evaluate llama.yaml --set model=mixtral-8x7b --set plan.ep=3"},
    {"evaluate llama.yaml --set plan.offload=cpu"},
    {"evaluate llama.yaml --set training.precision=nvfp4"},
    {"evaluate tiny-gpt-cpu --set training.precision=bf16"},
};

}  // namespace

TEST_CASE("errors are frozen: one line, what is wrong and what is allowed, status 2") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  scratch.write("base-1.yaml", "base: base-2.yaml\n");
  scratch.write("base-2.yaml", "base: base-1.yaml\n");
  scratch.write("device.yaml", "base: h100-sxm5-80gb\nmemory: {bytes: 80 GB/s}\n");
  std::filesystem::create_directory(scratch.path() / "folder");
  std::string text;
  for (const Fault& fault : faults) {
    CAPTURE(fault.command);
    CAPTURE(fault.file);
    if (!fault.file.empty()) scratch.write("faulty.yaml", fault.file);
    const Run failed = run(words_of(fault.command), scratch);
    CHECK(failed.status == 2);
    std::string told = masked(failed.err);
    if (const auto from = told.find("warning:"); from == 0) told.erase(0, told.find('\n') + 1);
    CHECK(std::count(told.begin(), told.end(), '\n') == 1);
    CHECK(contains(told, "; "));
    CHECK(failed.out == "");
    text += heading(fault.command) + without_names(told) + "\n";
  }
  CHECK(golden::compare("errors.txt", text) == "");
  CHECK(std::filesystem::is_empty(scratch.path() / "folder"));
}

TEST_CASE("a file without permission is told as such") {
  if (geteuid() == 0) return;  // root reads everything
  const Scratch scratch;
  scratch.write("closed.yaml", llama);
  std::filesystem::permissions(scratch.path() / "closed.yaml", std::filesystem::perms::none);
  const Run failed = run({"evaluate", "closed.yaml"}, scratch);
  CHECK(failed.status == 2);
  CHECK(contains(failed.err, "closed.yaml: cannot be opened: Permission denied"));
}

TEST_CASE("when nothing fits, the status is 3 and the report says why and what would help") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command :
       {"plan llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={}",
        "evaluate llama.yaml --set model=llama-3.1-405b --set cluster.devices=8 --set plan={} "
        "--set plan.tp=auto",
        "plan llama.yaml --set cluster.devices=1 --set plan={}",
        "plan tiny-gpt-cpu --set model=llama-3-70b --set plan={}"}) {
    CAPTURE(command);
    const Run text = run(words_of(command), scratch);
    CHECK(text.status == 3);
    CHECK(contains(text.out, "What stands in the way"));
    CHECK(contains(text.out, "What would help"));
  }
}

TEST_CASE("sizes at the limits are answered, or refused in a sentence, in reasonable time") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command : {"plan llama.yaml --set plan={} --set cluster.devices=1000000 "
                                    "--set training.global_batch=1000000",
                                    "evaluate llama.yaml --set plan={} --set "
                                    "cluster.devices=1000000 --set training.global_batch=1000000",
                                    "plan llama.yaml --set plan={} --set cluster.devices=999983 "
                                    "--set training.global_batch=999983",
                                    "evaluate llama.yaml --set plan={} --set model.layers=100000",
                                    "evaluate llama.yaml --set plan.pp=16 --set plan.dp=1 --set "
                                    "plan.tp=1 --set plan.sequence_parallel=false"
                                    " --set model.layers=100000",
                                    "evaluate llama.yaml --set training.sequence=100000000",
                                    "evaluate llama.yaml --set training.sequence=1 --set plan={} "
                                    "--set training.global_batch=16",
                                    "plan llama.yaml --set training.global_batch=1 --set plan={}",
                                    "evaluate llama.yaml --set model.vocab=100000000",
                                    "simulate llama.yaml --set training.global_batch=65536"}) {
    CAPTURE(command);
    const Run done = run(words_of(command), scratch, std::chrono::seconds(120));
    const bool clean = done.status == 0 || done.status == 2 || done.status == 3;
    CHECK(clean);
    CHECK_FALSE(contains(done.out, "nan"));
    CHECK_FALSE(contains(done.out, "inf "));
    CHECK_FALSE((done.out + done.err).empty());
  }
}

// Valid sizes that this version does not answer: the search prices each number of recomputed
// layers, the simulator replays each micro-batch, keys of its caches have 16 bits for a stage
// count.
TEST_CASE("many layers, batches and stages are answered or refused too") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string command :
       {"plan llama.yaml --set plan={} --set model.layers=100000",
        "plan llama.yaml --set plan={} --set model.layers=3000 --set cluster.devices=64",
        "evaluate llama.yaml --set training.global_batch=1000000000",
        "plan llama.yaml --set training.global_batch=1000000000",
        "evaluate llama.yaml --set plan={pp:\t100000} --set model.layers=100000 --set "
        "cluster.devices=100000"}) {
    CAPTURE(command);
    const Run done = run(words_of(command), scratch, std::chrono::seconds(120));
    const bool clean = done.status == 0 || done.status == 2 || done.status == 3;
    CHECK(clean);
  }
}

TEST_CASE("what is fixed obeys the rules of the stack in a search too") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  for (const std::string fixed : {"plan={zero:\t3}", "plan={recompute:\tselective}",
                                  "search.zero=[2,3]", "plan={sequence_parallel:\ttrue,tp:\t2}"}) {
    CAPTURE(fixed);
    const Run failed =
        run({"plan", "llama.yaml", "--set", "plan={}", "--set", "training.stack=megatron-2021",
             "--set", fixed, "--format", "yaml", "--out", "found.yaml"},
            scratch);
    // Either nothing is valid, or what was found is.
    if (failed.status == 3) continue;
    CHECK(failed.status == 0);
    CHECK(run({"evaluate", "found.yaml"}, scratch).status == 0);
  }
}

TEST_CASE("output goes where it is asked to, whole") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const Run printed = run(words_of("evaluate llama.yaml"), scratch);
  const Run silent = run(words_of("evaluate llama.yaml --out report.txt"), scratch);
  CHECK(silent.out == "");
  CHECK(scratch.read("report.txt") == printed.out);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "report.txt.part"));
  scratch.write("kept.txt", "old\n");
  std::filesystem::create_symlink("kept.txt", scratch.path() / "link.txt");
  CHECK(run(words_of("evaluate llama.yaml --out link.txt"), scratch).status == 0);
  CHECK(std::filesystem::is_symlink(scratch.path() / "link.txt"));
  CHECK(scratch.read("kept.txt") == printed.out);
  CHECK(run(words_of("evaluate llama.yaml --out /dev/null"), scratch).status == 0);
  CHECK(std::filesystem::is_character_file("/dev/null"));  // not renamed over
}

TEST_CASE("a full disk is told, not passed over") {
  if (!std::filesystem::is_character_file("/dev/full")) return;
  const Scratch scratch;
  for (const std::string arguments :
       {"plan gpt3-175b-selene", "list stacks", "evaluate tiny-gpt-cpu"}) {
    const Run failed = run(words_of(arguments), scratch, std::chrono::seconds(60), "/dev/full");
    CHECK(failed.status == 2);
    CHECK(contains(failed.err, "standard output cannot be written"));
  }
}

TEST_CASE("warnings go to standard error, and --quiet keeps them back") {
  const Scratch scratch;
  scratch.write("llama.yaml", llama);
  const std::string command = "evaluate llama.yaml --set model=llama-3-70b";
  const Run loud = run(words_of(command), scratch),
            quiet = run(words_of(command + " --quiet"), scratch);
  CHECK(loud.err.starts_with("warning: "));
  CHECK(quiet.err == "");
  CHECK(quiet.out == loud.out);
}

TEST_CASE("colour only when asked, and it changes no word") {
  const Scratch scratch;
  const Run plain = run(words_of("evaluate tiny-gpt-cpu"), scratch);
  const Run bright = run(words_of("evaluate tiny-gpt-cpu --color always"), scratch);
  CHECK_FALSE(contains(plain.out, "\033"));
  std::string stripped;
  for (std::size_t i = 0; i < bright.out.size(); ++i) {
    if (bright.out[i] == '\033') {
      i = bright.out.find('m', i);
    } else {
      stripped += bright.out[i];
    }
  }
  CHECK(bright.out != plain.out);
  CHECK(stripped == plain.out);
}

TEST_CASE("lists name what a scenario may name") {
  const Scratch scratch;
  for (const auto& [kind, name] : {std::pair<std::string, std::string>{"models", "gpt3-175b"},
                                   {"devices", "h100-sxm5-80gb"},
                                   {"clusters", "selene"},
                                   {"stacks", "megatron-2021"},
                                   {"scenarios", "tiny-gpt-cpu"}}) {
    const Run list = run({"list", kind}, scratch);
    CHECK(list.status == 0);
    CHECK(contains(list.out, name));
    CHECK(run({"list", kind, "--format", "csv"}, scratch).status == 0);
    CHECK(run({"list", kind, "--format", "json"}, scratch).status == 0);
  }
}
