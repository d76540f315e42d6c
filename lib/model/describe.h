// What a checkpoint is, for people and for machines.
#pragma once

#include <string>

#include "model/checkpoint.h"

namespace gdds::model {

// Everything but the tensors: what the network is, how many parameters it has, how long it was trained, on which process,
// with which vocabulary and objective. Rows of tab-separated values, or one JSON object with the same members.
std::string describe(const Checkpoint& checkpoint, const h5::Input& input, bool json);

// "LibTorch 2.14.1", for --version.
std::string library_version();

}  // namespace gdds::model
