#include "planner/frameworks/import_megatron.hpp"

#include <utility>

#include "planner/frameworks/megatron_import.hpp"
#include "planner/frameworks/megatron_model.hpp"
#include "planner/frameworks/megatron_plan.hpp"
#include "planner/frameworks/megatron_training.hpp"

namespace planner {

namespace {

void read_cluster(MegatronImport& in) {
  in.miss("cluster.base",
          "which devices they are, no argument says: add --cluster NAME (see `shardplan list "
          "clusters`)");
  const MegatronArguments& all = in.arguments();
  if (all.world_size > 0) {
    in.put("cluster.devices", std::to_string(all.world_size));
  } else {
    in.miss("cluster.devices",
            "the number of devices, which neither the launcher nor the script says");
  }
}

}  // namespace

ImportedJob import_megatron(const MegatronArguments& arguments) {
  MegatronImport in(arguments);
  in.job.notes = arguments.notes;
  for (const char* part : {"model", "cluster", "training", "plan"}) in.job.scenario.set(part, {});
  read_megatron_model(in);
  read_cluster(in);
  read_megatron_training(in, read_megatron_plan(in));
  in.list_others();
  return std::move(in.job);
}

}  // namespace planner
