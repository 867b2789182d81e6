#include "server/job/chain_image.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/base/id_source.h"
#include "proto/wire/message_codec.h"
#include "server/snapshot/image_files.h"

namespace strata::server {

wire::ForwardImageView ImageChunk::View(ShardId shard) const {
  return {shard, image, offset, data.span(), wire::ForwardCrc(data.span(), {}), bytes};
}

absl::StatusOr<std::unique_ptr<ImageSource>> ImageSource::Open(const std::string& folder,
                                                               ShardId shard) {
  const auto images = ListImages(folder);
  if (!images.ok()) return images.status();
  for (const ImageName& name : *images) {
    if (name.shard != shard) continue;
    auto file = storage::File::Open(absl::StrCat(folder, "/", ImageFileName(name)), O_RDONLY);
    if (!file.ok()) return file.status();
    const auto bytes = file->Size();
    if (!bytes.ok()) return bytes.status();
    const uint64_t drawn = IdSource::System()->Draw().low;
    return std::unique_ptr<ImageSource>(
        new ImageSource(*std::move(file), {drawn | 1, *bytes, {name.clock.value, 0}}));
  }
  return absl::NotFoundError(absl::StrCat("no base image of shard ", shard.value, " in ", folder));
}

absl::StatusOr<ImageChunk> ImageSource::Read(uint64_t offset) {
  if (offset >= sending_.bytes) offset = 0;
  BufferBuilder out(std::min(kChunkBytes, sending_.bytes - offset));
  if (absl::Status s = file_.ReadAt(offset, out.span()); !s.ok()) return s;
  return ImageChunk{sending_.image, offset, sending_.bytes, out.Finish()};
}

ImageReceiver::~ImageReceiver() {
  if (file_ == nullptr) return;
  file_.reset();
  storage::RemoveFile(path_).IgnoreError();
}

absl::StatusOr<bool> ImageReceiver::Put(const wire::ForwardImageView& part) {
  if (wire::ForwardCrc(part.data, {}) != part.crc32c) {
    return absl::AbortedError(absl::StrCat("image of shard ", part.shard.value, ", offset ",
                                           part.offset, ": the part is damaged"));
  }
  if (part.image != image_ && part.offset == 0) {
    file_.reset();
    if (absl::Status s = storage::RemoveFile(path_); !s.ok()) return s;
    auto file = storage::File::Open(path_, O_RDWR | O_CREAT);
    if (!file.ok()) return file.status();
    file_ = std::make_unique<storage::File>(*std::move(file));
    image_ = part.image;
    received_ = 0;
  }
  if (part.image != image_ || part.offset != received_ || file_ == nullptr) return false;
  iovec data[] = {{const_cast<uint8_t*>(part.data.data()), part.data.size()}};
  if (absl::Status s = file_->WriteAt(received_, data); !s.ok()) return s;
  received_ += part.data.size();
  return received_ == part.bytes;
}

}  // namespace strata::server
