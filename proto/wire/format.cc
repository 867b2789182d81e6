#include "proto/wire/format.h"

#include "proto/wire/message_limits.h"

namespace strata::wire {

bool FieldReader::FailWith(absl::StatusCode code, const std::string& what) {
  if (status_->ok()) {
    *status_ = absl::Status(
        code, absl::StrCat(name_, ", field ", field_, " at byte ", field_at_ - begin_, ": ", what));
  }
  at_ = end_;
  return false;
}

void FieldReader::SkipValue(int depth) {
  uint64_t number;
  std::span<const uint8_t> bytes;
  switch (type_) {
    case kVarint:
      RawVarint(10, number);
      return;
    case kLength:
      RawBytes(bytes);
      return;
    case kFixed32:
    case kFixed64: {
      const size_t size = type_ == kFixed32 ? 4 : 8;
      if (static_cast<size_t>(end_ - at_) < size) {
        Fail("ends inside a number");
        return;
      }
      at_ += size;
      return;
    }
    case kGroup: {
      if (depth == kMaxUnknownDepth) {
        Fail(absl::StrCat("unknown groups nested deeper than ", kMaxUnknownDepth));
        return;
      }
      const uint32_t open = field_;
      while (Next()) {
        if (type_ == kEndGroup) {
          if (field_ != open) Fail(absl::StrCat("ends group ", field_, " inside group ", open));
          return;
        }
        SkipValue(depth + 1);
      }
      if (status_->ok()) Fail(absl::StrCat("group ", open, " has no end"));
      return;
    }
    default:
      Fail(absl::StrCat("wire type ", type_));
  }
}

}  // namespace strata::wire
