// The number that both ends of a message give it, so that what is waited for can be named.
#pragma once

#include <string>

namespace runtime {

// Results that travel between pipeline stages: `stage` (below 4,096) is the one whose result it is.
// Micro-batches wrap at 65,536; messages of one tag arrive in order, so that nothing mixes.
int forward_tag(int stage, int micro_batch);
int backward_tag(int stage, int micro_batch);
// The same of micro-batch 0.
int without_micro_batch(int tag);

// One collective takes one tag. Collectives that a pair of ranks runs one after the other may share
// it; those that run at the same time may not. `number` wraps at 2^28.
int collective_tag(int number);

// The numbers of a stage's collectives: over its tensor ranks, the replicas of its weights, and the
// ends of the pipeline, which share the token table.
enum StageChannel { tensor_channel = 1, replica_channel, ends_channel };

// What the run itself says between its ranks: start, results, end. `number` is below 2^27.
int control_tag(int number);
// What transports say themselves: that a rank has ended, who waits for whom, that the run is given
// up, that a rank sends no more.
int end_tag();
int question_tag();
int answer_tag();
int given_up_tag();
int farewell_tag();

// "the forward result of stage 3, micro-batch 5", "a message of collective 7".
std::string tag_text(int tag);

}  // namespace runtime
