#include "tests/proto/wire/wire_generator.h"

#include <algorithm>
#include <vector>

namespace strata::testing {

struct WireGenerator::Field {
  enum Type { kNumber, kFixed64, kFixed32, kBytes, kNumbers, kMessage } type;
  uint32_t number;
  const Schema* message = nullptr;
};

struct WireGenerator::Schema {
  std::vector<Field> fields;
};

// Kept beside data.proto by hand, so that a field that the codec forgets is missed here too only if
// it is forgotten twice; "the codec knows every field of data.proto" checks both by reflection.
const WireGenerator::Schema& WireGenerator::SchemaOf(MessageKind kind) {
  static const Schema header{{{Field::kNumber, 1},
                              {Field::kFixed64, 2},
                              {Field::kNumber, 3},
                              {Field::kNumber, 4},
                              {Field::kNumber, 5}}};
  static const Schema state{
      {{Field::kFixed64, 1}, {Field::kNumber, 2}, {Field::kNumber, 3}, {Field::kNumber, 4}}};
  static const Schema group{{{Field::kNumber, 1},
                             {Field::kNumber, 2},
                             {Field::kBytes, 3},
                             {Field::kBytes, 4},
                             {Field::kFixed32, 5}}};
  static const Schema ticket{
      {{Field::kFixed64, 1}, {Field::kNumber, 2}, {Field::kNumber, 3}, {Field::kFixed32, 4}}};
  static const Schema contribution{{{Field::kNumber, 1},
                                    {Field::kNumber, 2},
                                    {Field::kNumber, 3},
                                    {Field::kMessage, 4, &group},
                                    {Field::kMessage, 5, &ticket}}};
  static const Schema only_header{{{Field::kMessage, 1, &header}}};
  static const Schema only_state{{{Field::kMessage, 1, &state}}};
  static const Schema pull_request{{{Field::kMessage, 1, &header},
                                    {Field::kNumber, 2},
                                    {Field::kNumber, 3},
                                    {Field::kNumbers, 4},
                                    {Field::kMessage, 5, &group},
                                    {Field::kNumber, 6},
                                    {Field::kNumber, 7},
                                    {Field::kMessage, 8, &ticket}}};
  static const Schema pull_reply{{{Field::kMessage, 1, &state},
                                  {Field::kNumber, 2},
                                  {Field::kMessage, 3, &group},
                                  {Field::kMessage, 4, &ticket}}};
  static const Schema prefetch_request{{{Field::kMessage, 1, &header},
                                        {Field::kNumber, 2},
                                        {Field::kNumbers, 3},
                                        {Field::kMessage, 4, &group}}};
  static const Schema prefetch_reply{{{Field::kMessage, 1, &state}, {Field::kMessage, 2, &ticket}}};
  static const Schema push_request{{{Field::kMessage, 1, &header},
                                    {Field::kNumber, 2},
                                    {Field::kNumber, 3},
                                    {Field::kNumber, 4},
                                    {Field::kNumber, 5},
                                    {Field::kNumber, 6},
                                    {Field::kNumber, 7},
                                    {Field::kNumbers, 8},
                                    {Field::kMessage, 9, &contribution}}};
  static const Schema push_reply{{{Field::kMessage, 1, &state}, {Field::kNumber, 2}}};
  static const Schema mark_request{{{Field::kMessage, 1, &header},
                                    {Field::kNumber, 2},
                                    {Field::kNumber, 3},
                                    {Field::kNumber, 4},
                                    {Field::kNumber, 5},
                                    {Field::kNumber, 6}}};
  static const Schema forward_entry{
      {{Field::kNumber, 1}, {Field::kBytes, 2}, {Field::kBytes, 3}, {Field::kFixed32, 4}}};
  static const Schema forward_image{{{Field::kNumber, 1},
                                     {Field::kFixed64, 2},
                                     {Field::kNumber, 3},
                                     {Field::kBytes, 4},
                                     {Field::kFixed32, 5},
                                     {Field::kNumber, 6}}};
  // Without texts, which may hold what is no UTF-8.
  static const Schema forward_request{{{Field::kMessage, 1, &header},
                                       {Field::kNumber, 4},
                                       {Field::kMessage, 7, &forward_entry},
                                       {Field::kMessage, 8, &forward_image},
                                       {Field::kNumber, 9}}};
  static const Schema forward_end{{{Field::kNumber, 1},
                                   {Field::kNumber, 2},
                                   {Field::kNumber, 3},
                                   {Field::kNumber, 4},
                                   {Field::kNumber, 5},
                                   {Field::kNumber, 6},
                                   {Field::kFixed64, 7},
                                   {Field::kNumber, 8}}};
  static const Schema forward_reply{
      {{Field::kMessage, 1, &state}, {Field::kNumber, 2}, {Field::kMessage, 3, &forward_end}}};
  switch (kind) {
    case MessageKind::kForwardRequest:
      return forward_request;
    case MessageKind::kForwardReply:
      return forward_reply;
    case MessageKind::kOpenSessionRequest:
      return only_header;
    case MessageKind::kPullRequest:
      return pull_request;
    case MessageKind::kPullReply:
      return pull_reply;
    case MessageKind::kPushRequest:
      return push_request;
    case MessageKind::kPushReply:
      return push_reply;
    case MessageKind::kMarkRequest:
      return mark_request;
    case MessageKind::kPrefetchRequest:
      return prefetch_request;
    case MessageKind::kPrefetchReply:
      return prefetch_reply;
    case MessageKind::kOpenSessionReply:
    case MessageKind::kMarkReply:
      break;
  }
  return only_state;
}

std::string WireGenerator::Message(MessageKind kind) { return Fields(SchemaOf(kind)); }

std::string WireGenerator::Fields(const Schema& schema) {
  std::string out;
  for (uint64_t n = Below(2 * schema.fields.size() + 2); n > 0; --n) {
    if (Below(8) == 0) {
      AddUnknown(out, 0);
    } else {
      Add(schema.fields[Below(schema.fields.size())], out);
    }
  }
  return out;
}

void WireGenerator::Add(const Field& field, std::string& out) {
  const auto tag = [&](uint32_t type) { AddNumber(field.number << 3 | type, 5, out); };
  const auto bytes = [&](const std::string& s) {
    tag(2);
    AddNumber(s.size(), 5, out);
    out += s;
  };
  switch (field.type) {
    case Field::kNumber:
      tag(0);
      AddNumber(Number(), 10, out);
      break;
    case Field::kFixed64:
    case Field::kFixed32: {
      tag(field.type == Field::kFixed64 ? 1 : 5);
      const uint64_t v = Number();
      for (int i = 0; i < (field.type == Field::kFixed64 ? 8 : 4); ++i) {
        out += static_cast<char>(v >> (8 * i));
      }
      break;
    }
    case Field::kBytes:
      bytes(Bytes());
      break;
    case Field::kNumbers:
      if (Below(2) == 0) {
        tag(0);
        AddNumber(Number(), 10, out);
      } else {
        std::string run;
        for (uint64_t n = Below(5); n > 0; --n) AddNumber(Number(), 10, run);
        bytes(run);
      }
      break;
    case Field::kMessage:
      bytes(Fields(*field.message));
      break;
  }
}

void WireGenerator::AddUnknown(std::string& out, int depth) {
  const auto number = static_cast<uint32_t>(Below(2) == 0 ? 10 + Below(6) : 10 + Below(1u << 28));
  switch (Below(depth < 4 ? 5 : 4)) {
    case 0:
      AddNumber(number << 3, 5, out);
      AddNumber(Number(), 10, out);
      break;
    case 1:
      AddNumber(number << 3 | 1, 5, out);
      out += std::string(8, 'x');
      break;
    case 2: {
      const std::string s = Bytes();
      AddNumber(number << 3 | 2, 5, out);
      AddNumber(s.size(), 5, out);
      out += s;
      break;
    }
    case 3:
      AddNumber(number << 3 | 5, 5, out);
      out += std::string(4, 'y');
      break;
    default:
      AddNumber(number << 3 | 3, 5, out);
      for (uint64_t n = Below(3); n > 0; --n) AddUnknown(out, depth + 1);
      AddNumber(number << 3 | 4, 5, out);
  }
}

void WireGenerator::AddNumber(uint64_t v, int most_bytes, std::string& out) {
  std::string bytes;
  do {
    bytes += static_cast<char>(v & 0x7f);
    v >>= 7;
  } while (v != 0);
  if (Below(8) == 0) bytes.resize(bytes.size() + Below(most_bytes - bytes.size() + 1), '\0');
  for (size_t i = 0; i + 1 < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] | 0x80);
  out += bytes;
}

uint64_t WireGenerator::Number() {
  switch (Below(4)) {
    case 0:
      return Below(4);
    case 1:
      return Below(1000);
    case 2:
      return random_() >> Below(64);
    default:
      return ~uint64_t{0} - Below(2);
  }
}

std::string WireGenerator::Bytes() {
  std::string s(Below(4) == 0 ? Below(20) : 8 * Below(6), '\0');
  for (char& c : s) c = static_cast<char>(random_());
  return s;
}

void WireGenerator::Mutate(std::string& m) {
  for (uint64_t n = 1 + Below(4); n > 0; --n) {
    const size_t at = m.empty() ? 0 : Below(m.size());
    switch (m.empty() ? 2 : Below(7)) {
      case 0:
        m[at] = static_cast<char>(m[at] ^ (1 << Below(8)));
        break;
      case 1:
        m[at] = static_cast<char>(random_());
        break;
      case 2:
        m.insert(at, 1, static_cast<char>(random_()));
        break;
      case 3:
        m.erase(at, 1 + Below(4));
        break;
      case 4:
        m.insert(Below(m.size() + 1), m.substr(at, 1 + Below(16)));
        break;
      case 5:
        m.resize(at);
        break;
      default: {
        static constexpr unsigned char kInteresting[] = {0x00, 0x7f, 0x80, 0xff, 0x0b, 0x0c, 0x12};
        m[at] = static_cast<char>(kInteresting[Below(sizeof(kInteresting))]);
      }
    }
  }
}

}  // namespace strata::testing
