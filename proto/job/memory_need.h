// What a server must keep free for a job, as far as the job and the size of its input tell: what
// the scheduler places jobs by, and `strata estimate` prints. Pure functions. They are bounds and
// guesses: server/memory_estimate.h adds up what each part of a server states of itself, once the
// data were read; a test holds both against each other.
#ifndef STRATA_PROTO_JOB_MEMORY_NEED_H_
#define STRATA_PROTO_JOB_MEMORY_NEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/core/memory_part.h"
#include "proto/job/fields/row_limits.h"
#include "proto/strata/job.pb.h"

namespace strata {

// What is known of a job's data.
struct DataSize {
  uint64_t lines = 0;  // 0: it is not indexed yet
  uint64_t bytes = 0;  // of their text
  uint32_t fields = 0;
  uint32_t numeric = 0;
  uint64_t rows = 0;  // features that get a row; 0: guessed, see NeedOfServer
  VocabularySizes vocabularies;
};

// Of one server of the job, bytes.
struct ServerNeed {
  // What the job file itself asks for: dramBytesPerServer, gpuBytesPerServer. A server that has
  // less in all never takes the job.
  MemoryNeed least;
  // With all that the job is expected to take beside it; never below `least`. Without lines: the
  // same.
  MemoryNeed likely;
  // What of likely.dram_bytes are rows and their index; and how many rows of features that is.
  uint64_t row_bytes = 0;
  uint64_t rows = 0;
  bool guessed = false;           // no limit is given: row_bytes is a guess
  std::vector<MemoryPart> parts;  // of likely.dram_bytes
};

// How many of so many occurrences are features of their own: all up to about a million, and of more
// a sixteenth. (Of public click data the most is one in 35: Criteo's week has 33.7
// million features in 1.19 thousand million occurrences; Avazu one in 94, Frappe one in 530.)
uint64_t GuessRows(uint64_t occurrences);

// Of a resolved job with so many shards on a server (ShardsOfServer):
//   rows       dramBytesPerServer, with buffers of the tier below for rows that have no room in the
//              part of their table (proto/core/dram_parts.h); or rows x (row + 8 + 7.25).
//              Where the data do not say how many: GuessRows of what lines are likely to have
//              (line_features.h) in fields whose values are hashed, and of the others no more than
//              vocabularies and buckets give (row_limits.h). Tables have the rows of their fields.
//   a step     keys of a batch are batchSize x the most features of a line (line_features.h), and
//              of a table no more than its rows: requests and replies of each worker, sums,
//              pre-images, log records
//   snapshots  2 x min(shards x 64 MiB + rows of a commit, all rows), where images or checkpoints
//              are written
//   disk       rows below the limits twice, images once and a shard's more, logBytesPerServer
//   GPU        gpuBytesPerServer and, of bsp, pre-images
ServerNeed NeedOfServer(const JobSpec& spec, const DataSize& data, uint32_t shards);

// Shards of a job on one server of so many cores: spec.storage.shardsPerServer, else max(4, cores),
// at most the partitions that a server has. REQUIRES: servers >= 1.
uint32_t ShardsOfServer(const JobSpec& spec, uint32_t servers, uint32_t cores);

// "512 B", "1.5 GiB".
std::string BinarySize(uint64_t bytes);
// "1.5 GiB of memory, 3.0 GiB of disk, 2.0 GiB of GPU memory": what is not 0 of it.
std::string NeedText(const MemoryNeed& need);

}  // namespace strata

#endif  // STRATA_PROTO_JOB_MEMORY_NEED_H_
