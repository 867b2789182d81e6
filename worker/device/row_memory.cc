#include "worker/device/row_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "ops/cuda/api/memory.h"
#include "ops/cuda/api/stream.h"
#include "ops/cuda/rows/merge_rows.h"
#include "proto/core/mutex.h"
#include "worker/device/layers/return_if_error.h"

namespace strata::device {
namespace {

using ops::gpu::CudaApi;

// Pieces of a device's memory. Shared with each that is in use: the last to go frees what is left.
class Pieces : public std::enable_shared_from_this<Pieces> {
 public:
  Pieces(CudaApi* api, std::shared_ptr<const void> kept) : api_(api), kept_(std::move(kept)) {}
  ~Pieces() { FreeAll(); }

  absl::StatusOr<std::shared_ptr<float>> Take(size_t floats) {
    if (floats > SIZE_MAX / sizeof(float) / 2) {
      return absl::InvalidArgumentError("too many rows for an address space");
    }
    const size_t bytes = ops::gpu::ArenaBytes(floats * sizeof(float));
    auto piece = TakePiece(bytes);
    if (!piece.ok()) return piece.status();
    const auto [has, p] = *piece;
    return std::shared_ptr<float>(
        static_cast<float*>(p),
        [pieces = shared_from_this(), has = has](float* rows) { pieces->GiveBack(has, rows); });
  }

  size_t bytes() const {
    MutexLock lock(&mu_);
    return bytes_;
  }

 private:
  using Piece = std::pair<size_t, void*>;  // its bytes

  absl::StatusOr<Piece> TakePiece(size_t bytes) {
    MutexLock lock(&mu_);
    auto it = free_.lower_bound(bytes);
    if (it != free_.end()) {
      const Piece piece = *it;
      free_.erase(it);
      return piece;
    }
    if (!free_.empty()) FreeOne(std::prev(free_.end()));
    size_t wanted = ops::gpu::ArenaBytes(bytes + bytes / 4);
    void* p = nullptr;
    absl::Status status = api_->Malloc(wanted, &p);
    if (absl::IsResourceExhausted(status)) {
      FreeAllLocked();
      wanted = bytes;
      status = api_->Malloc(wanted, &p);
    }
    if (absl::IsResourceExhausted(status)) {
      return absl::Status(
          status.code(),
          absl::StrCat("rows of a step in the device's memory: ", bytes, " bytes beside ", bytes_,
                       " of other rows: ", status.message(),
                       "; give a smaller spec.training.batchSize or gpuBytesPerServer"));
    }
    if (!status.ok()) return status;
    bytes_ += wanted;
    return Piece(wanted, p);
  }

  void GiveBack(size_t bytes, void* p) {
    MutexLock lock(&mu_);
    free_.emplace(bytes, p);
  }

  // What a lost device answers was told by the calls before.
  void FreeOne(std::multimap<size_t, void*>::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    (void)api_->Free(it->second);
    bytes_ -= it->first;
    free_.erase(it);
  }
  void FreeAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (!free_.empty()) FreeOne(free_.begin());
  }
  void FreeAll() {
    MutexLock lock(&mu_);
    FreeAllLocked();
  }

  CudaApi* const api_;
  const std::shared_ptr<const void> kept_;
  mutable Mutex mu_;
  std::multimap<size_t, void*> free_ ABSL_GUARDED_BY(mu_);  // by bytes
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

class Memory : public RowMemory {
 public:
  Memory(CudaApi* api, std::string device, std::shared_ptr<const void> kept)
      : api_(api),
        device_(std::move(device)),
        pieces_(std::make_shared<Pieces>(api, std::move(kept))) {}

  ~Memory() override {
    MutexLock lock(&mu_);
    if (pinned_ != nullptr) (void)api_->FreeHost(pinned_);
    stream_ = ops::gpu::Stream();  // while the api is there
  }

  absl::Status Open() {
    auto stream = ops::gpu::MakeStream(api_);
    if (!stream.ok()) return stream.status();
    MutexLock lock(&mu_);
    stream_ = *std::move(stream);
    return absl::OkStatus();
  }

  const std::string& device() const override { return device_; }
  size_t device_bytes() const override { return pieces_->bytes(); }

  absl::StatusOr<std::shared_ptr<float>> Take(size_t floats) override {
    return pieces_->Take(floats);
  }

  absl::Status Merge(const RowMerge& m) override {
    const size_t rows = m.left_of.size();
    if (rows == 0) return absl::OkStatus();
    auto places = Take(2 * rows);
    if (!places.ok()) return places.status();
    auto* const there = reinterpret_cast<uint32_t*>(places->get());
    const size_t bytes = rows * sizeof(uint32_t);
    MutexLock lock(&mu_);
    STRATA_RETURN_IF_ERROR(NeedPinned(2 * bytes));
    std::memcpy(pinned_, m.left_of.data(), bytes);
    std::memcpy(pinned_ + bytes, m.right_of.data(), bytes);
    ops::gpu::MergeArguments a;
    a.left = m.left;
    a.right = m.right;
    a.left_of = there;
    a.right_of = there + rows;
    a.count.most = static_cast<uint32_t>(rows);
    a.dim = m.dim;
    a.out = m.out;
    absl::Status status = api_->CopyAsync(there, pinned_, 2 * bytes, stream_.get());
    if (status.ok()) status = ops::gpu::MergeRows(*api_, a, stream_.get());
    return Wait(status);
  }

  absl::Status Upload(const float* from, size_t floats, float* there) override {
    return InPieces(floats, [&](size_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      std::memcpy(pinned_, from + at, bytes);
      return Wait(api_->CopyAsync(there + at, pinned_, bytes, stream_.get()));
    });
  }

  absl::Status Download(const float* there, size_t floats, float* to) override {
    return InPieces(floats, [&](size_t at, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const absl::Status status = Wait(api_->CopyAsync(pinned_, there + at, bytes, stream_.get()));
      if (status.ok()) std::memcpy(to + at, pinned_, bytes);
      return status;
    });
  }

 private:
  template <typename Copy>
  absl::Status InPieces(size_t floats, const Copy& copy) {
    MutexLock lock(&mu_);
    for (size_t at = 0; at < floats; at += kCopyFloats) {
      const size_t bytes = std::min(kCopyFloats, floats - at) * sizeof(float);
      STRATA_RETURN_IF_ERROR(NeedPinned(bytes));
      STRATA_RETURN_IF_ERROR(copy(at, bytes));
    }
    return absl::OkStatus();
  }

  // Also where giving the work has failed: what was given before uses memory.
  absl::Status Wait(const absl::Status& given) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Status done = api_->Synchronize(stream_.get());
    return given.ok() ? done : given;
  }

  absl::Status NeedPinned(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (bytes <= pinned_bytes_) return absl::OkStatus();
    if (pinned_ != nullptr) (void)api_->FreeHost(pinned_);
    pinned_ = nullptr;
    pinned_bytes_ = 0;
    void* p = nullptr;
    const size_t wanted = ops::gpu::ArenaBytes(bytes + bytes / 4);
    STRATA_RETURN_IF_ERROR(api_->MallocHost(wanted, &p));
    pinned_ = static_cast<uint8_t*>(p);
    pinned_bytes_ = wanted;
    return absl::OkStatus();
  }

  CudaApi* const api_;
  const std::string device_;
  const std::shared_ptr<Pieces> pieces_;
  Mutex mu_;
  ops::gpu::Stream stream_ ABSL_GUARDED_BY(mu_);
  uint8_t* pinned_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t pinned_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowMemory>> RowMemory::Make(CudaApi* api, std::string device,
                                                           std::shared_ptr<const void> kept) {
  auto memory = std::make_unique<Memory>(api, std::move(device), std::move(kept));
  STRATA_RETURN_IF_ERROR(memory->Open());
  return std::unique_ptr<RowMemory>(std::move(memory));
}

}  // namespace strata::device
