// A base image on its way to a copy that has nothing of a shard.
// Tested by tests/server/job/chain_test.cc
#ifndef STRATA_SERVER_JOB_CHAIN_IMAGE_H_
#define STRATA_SERVER_JOB_CHAIN_IMAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "proto/wire/buffer.h"
#include "proto/wire/message.h"
#include "server/protocol/replica_chain.h"
#include "storage/io/file_io.h"

namespace strata::server {

// A part of one.
struct ImageChunk {
  uint64_t image = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // of the whole
  Buffer data;
  wire::ForwardImageView View(ShardId shard) const;
};

// Of an image that is being sent: its number, how long it is, and where the log goes on from it.
struct ImageSending {
  uint64_t image = 0;
  uint64_t bytes = 0;
  LogEnd at;
};

// The newest image of a shard; a file that is removed meanwhile is read on. One thread at a time.
class ImageSource {
 public:
  static constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

  // NOT_FOUND: there is none yet.
  static absl::StatusOr<std::unique_ptr<ImageSource>> Open(const std::string& folder,
                                                           ShardId shard);
  absl::StatusOr<ImageChunk> Read(uint64_t offset);

  const ImageSending& sending() const { return sending_; }
  const std::string& path() const { return file_.path(); }

 private:
  ImageSource(storage::File file, const ImageSending& sending)
      : file_(std::move(file)), sending_(sending) {}
  storage::File file_;
  const ImageSending sending_;
};

// Where parts are put together. One thread at a time.
class ImageReceiver {
 public:
  explicit ImageReceiver(std::string path) : path_(std::move(path)) {}
  ~ImageReceiver();

  // Puts a part that follows what is there, and ignores others; of another image it begins anew.
  // True: the file is whole, at path(). ABORTED: the part is damaged, and may be sent again.
  absl::StatusOr<bool> Put(const wire::ForwardImageView& part);

  const std::string& path() const { return path_; }
  uint64_t image() const { return image_; }
  uint64_t received() const { return received_; }

 private:
  const std::string path_;
  std::unique_ptr<storage::File> file_;
  uint64_t image_ = 0;
  uint64_t received_ = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_JOB_CHAIN_IMAGE_H_
