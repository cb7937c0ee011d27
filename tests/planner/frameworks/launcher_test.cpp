// Launch scripts for Slurm and Kubernetes: what bash and our YAML reader make of them, and that
// they come back.
#include "planner/frameworks/launcher.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "costmodel/config/yaml.hpp"
#include "planner/frameworks/export_bridge.hpp"
#include "planner/frameworks/export_nemo.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/read_job.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/planner/support/round_trips.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace launcher_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using fixtures::contains;
using planner::Launcher;

namespace {

std::string megatron_script(const Scenario& s, const ParallelPlan& plan) {
  return planner::launch_script(planner::export_megatron(s, plan), s, plan);
}

bool bash_reads(const std::string& script) {
  const program::Scratch scratch;
  scratch.write("launch.sh", script);
  return std::system(("bash -n " + (scratch.path() / "launch.sh").string()).c_str()) == 0;
}

}  // namespace

TEST_CASE("Slurm's script asks for nodes and starts itself on each") {
  const Scenario s = megatron::tiny_llama();
  const ParallelPlan plan = megatron::small_plan();
  const std::string script =
      planner::with_launcher(megatron_script(s, plan), Launcher::slurm, s, plan);
  CHECK(script.starts_with("#!/usr/bin/env bash\n#SBATCH --job-name=" + planner::job_name(s) +
                           "\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH "
                           "--gpus-per-node=8\n#SBATCH --exclusive\n#SBATCH "
                           "--partition=REPLACE\n"));
  CHECK(contains(script, "exec srun bash -c \"$(cat \"$0\")\""));
  CHECK_FALSE(contains(script, "with MASTER_ADDR naming"));
  CHECK(bash_reads(script));
}

TEST_CASE("each node of a Slurm job runs torchrun with the first one's name") {
  const Scenario s = megatron::tiny_llama();
  const ParallelPlan plan = megatron::small_plan();
  const program::Scratch scratch;
  scratch.write("job.sh",
                planner::with_launcher(megatron_script(s, plan), Launcher::slurm, s, plan));
  const std::string folder = scratch.path().string();
  scratch.write("scontrol", "#!/bin/bash\nprintf 'first\\nsecond\\n'\n");
  scratch.write("srun", "#!/bin/bash\nfor i in 0 1; do SLURM_NODEID=$i \"$@\"; done\n");
  scratch.write("torchrun", "#!/bin/bash\necho \"$6 $8 ${11}\" >> \"$OUT\"\n");
  const std::string command = "cd " + folder +
                              " && chmod +x scontrol srun torchrun && PATH=" + folder +
                              ":$PATH OUT=" + folder + "/out SLURM_JOB_NODELIST=x bash job.sh";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(scratch.read("out") == "0 first pretrain_gpt.py\n1 first pretrain_gpt.py\n");
}

TEST_CASE("a Job of Kubernetes is YAML with the script in it") {
  const Scenario s = megatron::tiny_llama();
  const ParallelPlan plan = megatron::small_plan();
  const std::string text =
      planner::with_launcher(megatron_script(s, plan), Launcher::kubernetes, s, plan);
  const costmodel::Value list = costmodel::parse_yaml(text, "job.yaml");
  REQUIRE(list.find("items")->items.size() == 3);
  const costmodel::Value* spec = list.find("items")->items[2].find("spec");
  CHECK(spec->find("completions")->text == "2");
  CHECK(contains(text, "limits: {nvidia.com/gpu: 8, REPLACE: 1}"));
  CHECK(contains(text, "image: REPLACE"));
  CHECK(contains(planner::launcher_note(text), "image, one with the framework"));
  const auto script = planner::script_of_job(text, "job.yaml");
  REQUIRE(script.has_value());
  CHECK(script->starts_with("#!/usr/bin/env bash\n"));
  CHECK(bash_reads(*script));
  CHECK_FALSE(planner::script_of_job("model: {}\n", "x.yaml").has_value());
}

TEST_CASE("what a site calls its own, and a name for each job") {
  Scenario s = megatron::tiny_llama();
  s.name = "Llama_3.1 8B (first)";
  CHECK(planner::job_name(s) == "llama-3-1-8b-first");
  const ParallelPlan plan = megatron::small_plan();
  const planner::Site site = planner::site_of({"queue=h100", "account=a1", "time=4:00:00",
                                               "image=host/x:1", "folder=/opt/m", "rdma=rdma/hca"});
  const std::string batch =
      planner::with_launcher(megatron_script(s, plan), Launcher::slurm, s, plan, site);
  for (const char* line : {"#SBATCH --job-name=llama-3-1-8b-first\n", "#SBATCH --partition=h100\n",
                           "#SBATCH --account=a1\n", "#SBATCH --time=4:00:00\n"})
    CHECK(contains(batch, line));
  const std::string job =
      planner::with_launcher(megatron_script(s, plan), Launcher::kubernetes, s, plan, site);
  for (const char* part : {"queue-name: h100", "image: host/x:1", "workingDir: /opt/m",
                           "rdma/hca: 1", "value: llama-3-1-8b-first-0.llama-3-1-8b-first"})
    CHECK(contains(job, part));
  CHECK(planner::launcher_note(batch + job).empty());
  CHECK_FALSE(contains(job, "REPLACE"));
  for (const char* wrong : {"queue", "queue=", "queue=a b", "nodes=2", "image=x\ny"})
    CHECK_THROWS_WITH(planner::site_of({wrong}), doctest::Contains("is no setting of a site"));
  s.name = "70B";
  CHECK(planner::job_name(s) == "shardplan-70b");
}

TEST_CASE("scripts of every framework come back from every launcher") {
  const Scenario s = megatron::tiny_llama();
  const ParallelPlan plan = megatron::small_plan();
  const program::Scratch scratch;
  for (const std::string& script :
       {megatron_script(s, plan), planner::export_bridge(s, plan).script,
        planner::export_nemo(s, plan).script}) {
    for (const Launcher launcher : {Launcher::torchrun, Launcher::slurm, Launcher::kubernetes}) {
      scratch.write("job", planner::with_launcher(script, launcher, s, plan));
      planner::ImportedJob job = planner::read_job((scratch.path() / "job").string());
      planner::set_cluster(job, "dgx-h100");
      CHECK(job.missing.empty());
      CHECK(job.left_out.empty());
      const Scenario out = scenarios::read(to_yaml(job));
      CHECK(out.cluster.devices == 16);
      CHECK(resolve_plan(out).tp == 2);
      CHECK(resolve_plan(out).dp == 4);
    }
  }
}

TEST_CASE("200 random plans come back from Slurm and Kubernetes") {
  const auto accepts = [](const Scenario& in, const ParallelPlan& plan) {
    return planner::megatron_violations(in, plan).empty();
  };
  const auto check = [](const Scenario& in, const ParallelPlan& plan, const std::string& cluster) {
    const std::string script = megatron_script(in, plan);
    const std::string job = planner::with_launcher(script, Launcher::kubernetes, in, plan);
    for (const std::string& text : {planner::with_launcher(script, Launcher::slurm, in, plan),
                                    planner::script_of_job(job, "job.yaml").value_or("")}) {
      auto back = planner::import_megatron(planner::read_megatron_script(text, "x.sh"));
      CHECK(back.left_out.empty());
      planner::set_cluster(back, cluster);
      round_trips::check_same(in, scenarios::read(to_yaml(back)), plan);
    }
  };
  const int plans = sanitized ? 15 : 200;
  CHECK(round_trips::of_random_plans(plans, accepts, check) == plans);
}

TEST_CASE("a script that starts its processes otherwise is refused") {
  const Scenario s = megatron::tiny_llama();
  const ParallelPlan plan = megatron::small_plan();
  const std::string slurm =
      planner::with_launcher(megatron_script(s, plan), Launcher::slurm, s, plan);
  CHECK_THROWS_WITH(planner::with_launcher(slurm, Launcher::slurm, s, plan),
                    doctest::Contains("cannot be launched by slurm"));
  // DeepSpeed's launcher starts all nodes from the first, where a batch script runs.
  const std::string other = "#!/bin/bash\ndeepspeed --num_nodes 2 x.py\n";
  const std::string batch = planner::with_launcher(other, Launcher::slurm, s, plan);
  CHECK(batch.find("#SBATCH --nodes=2\n") != std::string::npos);
  CHECK(batch.find("srun") == std::string::npos);
  CHECK_THROWS_WITH(planner::with_launcher(other, Launcher::kubernetes, s, plan),
                    doctest::Contains("cannot be launched by kubernetes"));
  CHECK_THROWS_WITH(planner::launcher_of("mpi"),
                    doctest::Contains("there is no launcher 'mpi'; allowed: torchrun"));
}

}  // namespace launcher_test
