// The tags of messages: both ends compute the same number, and tag_text() names the message in
// error messages.
#pragma once

#include <string>

namespace runtime {

// Activations and gradients between pipeline stages; `stage` (below 4,096) is the one that produced
// them. Micro-batches wrap at 65,536; messages of one tag arrive in order, so that none are
// confused.
int forward_tag(int stage, int micro_batch);
int backward_tag(int stage, int micro_batch);
// The same tag with micro-batch 0.
int without_micro_batch(int tag);

// One collective takes one tag. Collectives that a pair of ranks runs in sequence may share a tag;
// concurrent ones may not. `number` wraps at 2^28.
int collective_tag(int number);

// The collective numbers of a stage: over its tensor ranks, over the replicas of its weights, and
// between the first and last stage when they tie the token table.
enum StageChannel { tensor_channel = 1, replica_channel, ends_channel };

// Control messages of a run: start, results, end. `number` is below 2^27.
int control_tag(int number);
// The transports' own messages: a rank has ended; which rank waits for which (question and answer);
// the run was given up; a rank will send nothing more.
int end_tag();
int question_tag();
int answer_tag();
int given_up_tag();
int farewell_tag();

// "the forward result of stage 3, micro-batch 5", "a message of collective 7".
std::string tag_text(int tag);

}  // namespace runtime
