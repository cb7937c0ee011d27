// A job of Hugging Face's Trainer, of accelerate, axolotl, LLaMA-Factory or ms-swift, as a
// scenario.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// What the file does not write takes the program's own default where it has one, with a note, and
// is missing otherwise. Sharding by FSDP or DeepSpeed is ZeRO's stage; DeepSpeed's stage is read
// off the name of its file. Throws costmodel::ConfigError at the place of a value that cannot be
// read, and for a training that has no model here (freezing by layer, OFT).
ImportedJob import_trainer(const std::string& text, const std::string& file, JobFormat format);

}  // namespace planner
