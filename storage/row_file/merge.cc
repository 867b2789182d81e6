#include "storage/row_file/merge.h"

#include <algorithm>
#include <utility>

namespace strata::storage::row_file {
namespace {

class ExtentSource final : public RowSource {
 public:
  ExtentSource(std::shared_ptr<const Extent> extent, size_t read_bytes, RowKey from)
      : extent_(std::move(extent)), read_bytes_(read_bytes) {
    Seek(from);
  }

  bool Valid() const override { return view_.has_value(); }
  RowKey key() const override { return key_; }
  uint32_t row_bytes() const override { return section().shape.row_bytes; }
  const uint8_t* row() const override { return view_->row(row_); }
  absl::Status status() const override { return status_; }

  void Next() override {
    if (++row_ < view_->rows()) {
      key_.position = view_->position(row_);
      return;
    }
    if (++block_ == section().fences.size()) {
      ++section_;
      block_ = 0;
    }
    Enter(0);
  }

  void Seek(RowKey key) override {
    const std::vector<Section>& sections = extent_->sections();
    const auto it =
        std::lower_bound(sections.begin() + static_cast<ptrdiff_t>(section_), sections.end(),
                         key.table, [](const Section& s, TableId t) { return s.table < t; });
    section_ = static_cast<size_t>(it - sections.begin());
    block_ = 0;
    if (it == sections.end() || it->table != key.table) return Enter(0);
    const auto fence = std::upper_bound(it->fences.begin(), it->fences.end(), key.position.value);
    block_ = fence == it->fences.begin() ? 0 : static_cast<size_t>(fence - it->fences.begin() - 1);
    Enter(key.position.value);
  }

 private:
  const Section& section() const { return extent_->sections()[section_]; }

  // Enters block_ of section_ at the first row at or after the position, or what follows.
  void Enter(uint64_t position) {
    view_.reset();
    if (!status_.ok() || section_ >= extent_->sections().size()) return;
    if (status_ = Load(); !status_.ok()) return view_.reset();
    key_.table = section().table;
    row_ = view_->LowerBound(Position(position));
    if (row_ < view_->rows()) {
      key_.position = view_->position(row_);
    } else {
      --row_;
      Next();
    }
  }

  absl::Status Load() {
    const BlockShape& shape = section().shape;
    const uint64_t at = section().offset + block_ * uint64_t{shape.block_bytes};
    if (at < buffer_at_ || at + shape.block_bytes > buffer_at_ + buffer_bytes_) {
      const uint64_t blocks = std::max<uint64_t>(1, read_bytes_ / shape.block_bytes);
      const uint64_t bytes = std::min(blocks * shape.block_bytes, section().end() - at);
      if (bytes > capacity_) {
        memory_ = AllocatePages(bytes);
        capacity_ = bytes;
      }
      buffer_bytes_ = 0;
      if (absl::Status s = extent_->Read(at, {memory_.get(), bytes}); !s.ok()) return s;
      buffer_at_ = at;
      buffer_bytes_ = bytes;
    }
    const auto number = section().first_block + static_cast<uint32_t>(block_);
    view_ = BlockView::Check(shape, {memory_.get() + (at - buffer_at_), shape.block_bytes},
                             extent_->place().number, number);
    if (!view_ || view_->rows() == 0) return extent_->Damaged(at, "a block that does not check");
    return absl::OkStatus();
  }

  const std::shared_ptr<const Extent> extent_;
  const size_t read_bytes_;
  PageMemory memory_;
  uint64_t capacity_ = 0;
  uint64_t buffer_at_ = 0;
  uint64_t buffer_bytes_ = 0;
  size_t section_ = 0;
  size_t block_ = 0;
  uint32_t row_ = 0;
  std::optional<BlockView> view_;
  RowKey key_;
  absl::Status status_;
};

class EntrySource final : public RowSource {
 public:
  explicit EntrySource(std::span<const Memtable::Entry> entries) : entries_(entries) {}
  bool Valid() const override { return !entries_.empty(); }
  RowKey key() const override { return entries_.front().key; }
  uint32_t row_bytes() const override { return entries_.front().row_bytes; }
  const uint8_t* row() const override { return entries_.front().row; }
  void Next() override { entries_ = entries_.subspan(1); }
  void Seek(RowKey key) override {
    const auto it =
        std::lower_bound(entries_.begin(), entries_.end(), key,
                         [](const Memtable::Entry& e, const RowKey& k) { return e.key < k; });
    entries_ = entries_.subspan(static_cast<size_t>(it - entries_.begin()));
  }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  std::span<const Memtable::Entry> entries_;
};

class Merger final : public RowSource {
 public:
  explicit Merger(std::vector<std::unique_ptr<RowSource>> sources) : sources_(std::move(sources)) {
    Settle();
  }
  bool Valid() const override { return best_ != nullptr; }
  RowKey key() const override { return key_; }
  uint32_t row_bytes() const override { return best_->row_bytes(); }
  const uint8_t* row() const override { return best_->row(); }
  absl::Status status() const override { return status_; }
  void Next() override {
    const RowKey passed = key_;
    for (const auto& source : sources_) {
      if (source->Valid() && source->key() == passed) source->Next();
    }
    Settle();
  }
  void Seek(RowKey key) override {
    for (const auto& source : sources_) {
      if (source->Valid() && source->key() < key) source->Seek(key);
    }
    Settle();
  }

 private:
  void Settle() {
    best_ = nullptr;
    for (const auto& source : sources_) {
      if (!source->Valid()) {
        if (status_ = source->status(); !status_.ok()) {
          best_ = nullptr;
          return;
        }
      } else if (best_ == nullptr || source->key() < key_) {
        best_ = source.get();
        key_ = source->key();
      }
    }
  }

  const std::vector<std::unique_ptr<RowSource>> sources_;
  RowSource* best_ = nullptr;
  RowKey key_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<RowSource> ReadExtent(std::shared_ptr<const Extent> extent, size_t read_bytes,
                                      RowKey from) {
  return std::make_unique<ExtentSource>(std::move(extent), read_bytes, from);
}

std::unique_ptr<RowSource> ReadEntries(std::span<const Memtable::Entry> entries) {
  return std::make_unique<EntrySource>(entries);
}

std::unique_ptr<RowSource> Merge(std::vector<std::unique_ptr<RowSource>> sources) {
  return std::make_unique<Merger>(std::move(sources));
}

}  // namespace strata::storage::row_file
