// The installed library in one header: read a scenario, resolve its plan, evaluate it, print it.
//
//   const auto path = costmodel::config_path({});
//   const auto file = costmodel::scenario_file("tiny-gpt-cpu", path);
//   const auto s = costmodel::load_scenario(file, path, {});
//   costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
//   const costmodel::Estimate e = evaluator.estimate(costmodel::resolve_plan(s));
//
// Inside Shardplan nothing includes this header: a file there includes what it uses.
#pragma once

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/timeline.hpp"
