// When a shard's base image is due, and how much of the log the images that exist still need. Pure.
#ifndef STRATA_SERVER_PROTOCOL_IMAGE_SCHEDULE_H_
#define STRATA_SERVER_PROTOCOL_IMAGE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace strata::server {

struct ImageScheduleOptions {
  uint64_t log_bytes = 0;  // spec.storage.logBytesPerServer: never more than this is aimed at
  size_t cores = 1;        // that recover shards at a time
  double restart_seconds = 10;
  // Bytes a second that one core recovers; RESULTS.md, Update log and restart.
  double load_rate = 200e6;    // of images
  double replay_rate = 300e6;  // of log
};

// One job's shards on a server, by index.
//
// A server that comes back loads I bytes of images and replays at most L bytes of log, shards side
// by side on c = min(cores, shards) of its cores, within restart_seconds if
//   L <= (restart_seconds - I / (c load_rate)) c replay_rate.
// Where that leaves less than I / 4, L is I / 4: a smaller one would have the disk write more than
// four bytes of image for a byte of log, without meeting the target anyway. L <= log_bytes always.
//
// Each shard gets an image once the log has grown by L since its last one; the first ones are
// staggered over L, so that images are written one at a time and evenly. On disk are thus at most
// L + what is committed while an image waits and is written.
class ImageSchedule {
 public:
  // An image that exists, or what a shard has without one.
  struct Start {
    uint64_t replay_bytes = 0;  // of log from its first segment on
    uint64_t image_bytes = 0;   // 0: no image
    uint64_t segment = 0;       // first log segment that it needs
  };
  // `appended` everywhere: bytes that went to the log since it was opened.
  ImageSchedule(const ImageScheduleOptions& options, const std::vector<Start>& shards);

  // L for the images that exist.
  uint64_t LogLimit() const;
  // The shard whose image is to be begun now; none while one is being written.
  std::optional<size_t> Due(uint64_t appended) const;

  // An image of the shard is begun; then its log segment is known; then it is done or failed.
  // REQUIRES: none is running. After a failure the next is not due before L / 8 more.
  void Begin(size_t shard, uint64_t appended);
  void Boundary(uint64_t segment) { boundary_ = segment; }
  void Done(uint64_t image_bytes);
  void Failed(uint64_t appended);
  bool running() const { return running_.has_value(); }

  // Log segments before this one are needed by no shard.
  uint64_t TrimBefore() const;

 private:
  struct Shard {
    int64_t begun_at =
        0;  // `appended` at its last image's begin; below 0: before the log was opened
    uint64_t image_bytes = 0;
    uint64_t segment = 0;
  };

  const ImageScheduleOptions options_;
  std::vector<Shard> shards_;
  std::optional<size_t> running_;
  int64_t begin_ = 0;        // of the running one
  uint64_t boundary_ = 0;    // of the running one
  uint64_t not_before_ = 0;  // after a failure
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_IMAGE_SCHEDULE_H_
