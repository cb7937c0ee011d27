// What the command line says of bad usage and bad input, frozen in tests/golden/errors.txt.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/golden.hpp"
#include "tests/planner/support/cli_cases.hpp"
#include "tests/run_program.hpp"

namespace cli_errors_test {

using cli::heading;
using cli::llama;
using fixtures::contains;
using program::masked;
using program::Run;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

// Which configurations there are is for `shardplan list`; here only that some are named.
std::string without_names(std::string text) {
  for (const auto* kind : {"no model '", "no cluster '", "no device '", "no stack '"}) {
    const auto known = text.find("known: ");
    if (contains(text, kind) && known != std::string::npos)
      text = text.substr(0, known) + "known: ...\n";
  }
  return text;
}

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
    {"evaluate llama.yaml --calibrated nowhere.yaml"},
    {"evaluate llama.yaml --out nowhere/report.txt"},
    {"evaluate llama.yaml --out folder"},
    {"list modls"},
    {"export llama.yaml"},
    {"export llama.yaml --to megatrn"},
    {"export llama.yaml --to megatron --site queue=a"},
    {"export llama.yaml --to megatron --save-dir job --out job.sh"},
    {"import gpt-neox faulty.yaml", "a: [1"},
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
    {"import deepspeed faulty.yaml", "{\"train_batch_size\": 8,\n}\n"},
    {"import deepspeed faulty.yaml --cluster nosuch", "{\"train_batch_size\": 8}\n"},
    {"import hf faulty.yaml", "{\"model_type\": \"lama\", \"hidden_size\": 64}\n"},
    {"import hf faulty.yaml --partial", "{\"model_type\": \"lama\", \"hidden_size\": 64}\n"},
    {"import hf faulty.yaml", "{\"model_type\": \"mixtral\", \"hidden_size\": 64}\n"},
    // Names.
    {"evaluate faulty.yaml", "modle: gpt2\n" + head + training},
    {"evaluate faulty.yaml", "modle: gpt2\ncluster: dgx-a100\n" + training},
    {"evaluate faulty.yaml", head + "training: {global_bach: 64, sequence: 8192}\n"},
    {"evaluate faulty.yaml", "model: gpt2\ncluster: {bsae: selene, devices: 64}\n" + training},
    {"evaluate faulty.yaml", "model: gpt2\ncluster: {devce: h100, devices: 64}\n" + training},
    {"evaluate faulty.yaml", head},
    {"evaluate llama.yaml --set model=llama-3-8bb"},
    {"evaluate llama.yaml --set model=no-such.yaml"},
    {"evaluate llama.yaml --set model=base-1.yaml"},
    {"evaluate llama.yaml --set cluster=dgx-h1000"},
    {"plan llama.yaml --set plan={} --set cluster=dgx-h100"},
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
    {"evaluate t5-11b-a100 --set plan.tp=4 --set plan.pp=4 --set plan.vpp=2"},
    {"evaluate t5-11b-a100 --set plan.cp=2"},
    {"evaluate t5-11b-a100 --set model.layers=47"},
    {"evaluate llama.yaml --set training.decoder_sequence=128"},
    {"export t5-11b-a100 --to megatron"},
    {"evaluate llama.yaml --set plan.recompute=ful"},
    {"evaluate llama.yaml --set plan.tpp=2"},
    {"evaluate llama.yaml --set training.batch=2"},
    {"evaluate llama-3-70b-lora-h100 --set training.fine_tuning.method=loar"},
    {"evaluate llama-3-70b-lora-h100 --set training.fine_tuning.rnk=8"},
    {"evaluate llama-3-70b-lora-h100 --set training.fine_tuning.targets=[q,w]"},
    {"evaluate llama-3-70b-lora-h100 --set training.fine_tuning.base_precision=nf4"},
    {"evaluate llama-3-70b-lora-h100 --set training.fine_tuning.rank=4"},
    {"evaluate llama-3-70b-lora-h100 --set training.precision=fp32"},
    {"evaluate llama-2-13b-qlora-24gb --set training.stack=megatron-2021"},
    {"evaluate llama.yaml --set plan.rank_order=tp-pp-dp"},
    {"evaluate llama.yaml --set model.kind=moe"},
    {"plan llama.yaml --set search.max_ttp=8"},
    {"plan llama.yaml --set search.recompute=[none,al]"},
    {"plan llama.yaml --set search.zero={a:\tb}"},
    {"plan llama.yaml --set search.memory_margin=0.95"},
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
    {"evaluate faulty.yaml",
     with_tier("{name: a, devices: 8, bandwidth_bytes_per_s: 450, latency_s: 2 us}")},
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
    {"plan llama.yaml --set plan.zero=0 --set training.stack=megatron-2021"},
    {"plan llama.yaml --set training.stack=megatron-2021"},
    {"evaluate llama.yaml --set plan.zero=0 --set plan.tp=auto --set training.stack=megatron-2021"},
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

TEST_CASE("a blank argument has its flag as its place") {
  const Scratch scratch;
  const std::string remedy = "is not an assignment; write key.path=value, such as plan.tp=8\n";
  CHECK(run({"evaluate", "tiny-gpt-cpu", "--set", ""}, scratch).err == "--set: '' " + remedy);
  CHECK(run({"plan", "tiny-gpt-cpu", "--set", " "}, scratch).err == "--set: ' ' " + remedy);
  const Run served =
      run({"export", "serve-llama-70b-32x-h100", "--to", "vllm", "--launcher", "slurm"}, scratch);
  CHECK(served.status == 2);
  CHECK(contains(served.err, "--launcher starts scripts of training"));
  CHECK(run({"export", "tiny-gpt-cpu", "--to", "megatron", "--set", "tp "}, scratch).err ==
        "--set tp: 'tp ' " + remedy);
  CHECK(run({"sweep", "tiny-gpt-cpu", "--over", ""}, scratch).err ==
        "--over: is not KEY=A,B,...; example: --over tp=1,2,4,8\n");
}

TEST_CASE("operators of another device, or flags of runs, are no validation of operators") {
  const Scratch scratch;
  scratch.write("t.csv",
                "operator,direction,seconds,tokens,hidden,device\n"
                "rms_norm,forward,1e-4,8192,4096,NVIDIA H100\n");
  const std::string on = "validate t.csv --set device=";
  CHECK(run(words_of(on + "h100-sxm5-80gb"), scratch).status == 0);
  const Run other = run(words_of(on + "a100-sxm4-80gb"), scratch);
  CHECK((other.status == 2 && contains(other.err, "has no operator that is priced")));
  const Run flags = run(words_of(on + "h100-sxm5-80gb --leave-one-source-out"), scratch);
  CHECK((flags.status == 2 && contains(flags.err, "leave out what is of runs")));
}

}  // namespace cli_errors_test
