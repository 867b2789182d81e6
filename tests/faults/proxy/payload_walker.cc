#include "tests/faults/proxy/payload_walker.h"

#include <algorithm>

namespace strata::testing {
namespace {

constexpr uint64_t kPreface = 24;  // "PRI * HTTP/2.0..." of who connects
constexpr size_t kFrameHead = 9;
constexpr uint64_t kMessageHead = 5;
constexpr uint8_t kData = 0, kRstStream = 3;
constexpr uint8_t kEndStream = 1, kPadded = 8;

}  // namespace

bool MessageWalker::Varint(uint8_t byte) {
  if (shift_ < 64) number_ |= uint64_t{byte & 0x7fU} << shift_;
  shift_ += 7;
  return (byte & 0x80) == 0;
}

void MessageWalker::OnTag() {
  field_ = number_ >> 3;
  const uint64_t type = number_ & 7;
  number_ = shift_ = 0;
  part_ = type == 0 ? Part::kVarint : type == 2 ? Part::kLength : Part::kSkip;
  left_ = type == 1 ? 8 : 4;
}

void MessageWalker::OnLength() {
  const uint64_t length = number_;
  number_ = shift_ = 0;
  const auto opens = [&](Kind kind) {
    part_ = Part::kTag;
    open_.push_back({kind, length});
  };
  switch (open_.back().kind) {
    case Kind::kRequest:
      if (field_ == 2) open_.back().kind = Kind::kForward;
      if (field_ == 9) return opens(Kind::kContribution);
      if (field_ == 5) return opens(Kind::kGroup);
      break;
    case Kind::kReply:
      if (field_ == 3) return opens(Kind::kGroup);
      break;
    case Kind::kContribution:
      if (field_ == 4) return opens(Kind::kGroup);
      break;
    case Kind::kForward:
      if (field_ == 7) return opens(Kind::kEntry);
      if (field_ == 8) return opens(Kind::kImage);
      break;
    case Kind::kGroup:
    case Kind::kEntry:
    case Kind::kImage:
      break;
  }
  const Kind kind = open_.back().kind;
  const bool payload = (kind == Kind::kGroup && (field_ == 3 || field_ == 4)) ||
                       (kind == Kind::kEntry && (field_ == 2 || field_ == 3)) ||
                       (kind == Kind::kImage && field_ == 4);
  part_ = length == 0 ? Part::kTag : payload ? Part::kPayload : Part::kSkip;
  left_ = length;
}

void MessageWalker::CloseEnded() {
  while (!open_.empty() && open_.back().left == 0) {
    open_.pop_back();
    part_ = Part::kTag;
  }
  if (!open_.empty()) return;
  part_ = Part::kPrefix;
  left_ = kMessageHead;
  number_ = shift_ = 0;
}

bool MessageWalker::Next(uint8_t byte) {
  if (part_ == Part::kPrefix) {
    // A byte that says whether it is compressed, then its length, greatest byte first.
    if (left_ < kMessageHead) number_ = number_ << 8 | byte;
    if (--left_ > 0) return false;
    open_ = {{way_ == Way::kRequests ? Kind::kRequest : Kind::kReply, number_}};
    part_ = Part::kTag;
    number_ = shift_ = 0;
    CloseEnded();
    return false;
  }
  for (Open& open : open_) open.left -= std::min<uint64_t>(open.left, 1);
  const bool payload = part_ == Part::kPayload;
  switch (part_) {
    case Part::kTag:
      if (Varint(byte)) OnTag();
      break;
    case Part::kVarint:
      if (Varint(byte)) {
        number_ = shift_ = 0;
        part_ = Part::kTag;
      }
      break;
    case Part::kLength:
      if (Varint(byte)) OnLength();
      break;
    default:
      if (--left_ == 0) part_ = Part::kTag;
  }
  CloseEnded();
  return payload;
}

PayloadWalker::PayloadWalker(Way way) : way_(way), skip_(way == Way::kRequests ? kPreface : 0) {}

void PayloadWalker::OnHead() {
  const uint64_t length = uint64_t{head_[0]} << 16 | uint64_t{head_[1]} << 8 | head_[2];
  const uint8_t type = head_[3], flags = head_[4];
  stream_ =
      (uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 | uint32_t{head_[7]} << 8 | head_[8]) &
      0x7fffffffU;
  head_.clear();
  ends_ = (flags & kEndStream) != 0;
  // gRPC pads nothing.
  if (type == kData && (flags & kPadded) == 0) {
    data_ = length;
  } else {
    skip_ = length;
  }
  if (type == kRstStream || (data_ == 0 && ends_)) streams_.erase(stream_);
}

void PayloadWalker::Walk(std::span<uint8_t> bytes, const std::function<void(uint8_t&)>& at) {
  for (uint8_t& byte : bytes) {
    if (skip_ > 0) {
      --skip_;
    } else if (data_ > 0) {
      MessageWalker& stream = streams_.try_emplace(stream_, way_).first->second;
      if (stream.Next(byte)) at(byte);
      if (--data_ == 0 && ends_) streams_.erase(stream_);
    } else {
      head_.push_back(byte);
      if (head_.size() == kFrameHead) OnHead();
    }
  }
}

}  // namespace strata::testing
