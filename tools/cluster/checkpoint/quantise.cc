#include "tools/cluster/checkpoint/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ops/codec.h"
#include "ops/mxcsr.h"
#include "proto/core/checksum.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/files/job_places.h"
#include "storage/io/file_io.h"
#include "storage/io/file_stream.h"
#include "tools/cluster/checkpoint/quantised_copy.h"
#include "tools/cluster/checkpoint/rows.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
std::span<const uint8_t> BytesOf(const T* values, size_t count) {
  return {reinterpret_cast<const uint8_t*>(values), count * sizeof(T)};
}

// A file of one array, whose number of rows is known beforehand.
class NpyFile {
 public:
  // `name` in `folder`, less .npy.
  static absl::StatusOr<NpyFile> Create(const std::string& folder, const std::string& name,
                                        const char* dtype, const std::vector<uint64_t>& shape) {
    const std::string file_name = name + ".npy";
    auto stream = storage::FileStream::Create(absl::StrCat(folder, "/", file_name));
    if (!stream.ok()) return stream.status();
    NpyFile file(*std::move(stream), file_name);
    std::string dims;
    for (const uint64_t n : shape) absl::StrAppend(&dims, n, ", ");
    std::string header =
        absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (", dims, "), }");
    header.append(63 - (10 + header.size()) % 64, ' ');
    header.push_back('\n');
    const auto length = static_cast<uint16_t>(header.size());
    const uint8_t magic[10] = {0x93,
                               'N',
                               'U',
                               'M',
                               'P',
                               'Y',
                               1,
                               0,
                               static_cast<uint8_t>(length & 255),
                               static_cast<uint8_t>(length >> 8)};
    absl::Status s = file.Append(magic);
    if (s.ok()) s = file.Append(BytesOf(header.data(), header.size()));
    if (!s.ok()) return s;
    return file;
  }
  absl::Status Append(std::span<const uint8_t> bytes) {
    written_.bytes += bytes.size();
    written_.crc32c = Crc32cExtend(written_.crc32c, bytes);
    return stream_.Append(bytes);
  }
  absl::Status Finish(QuantiseSummary& summary) {
    summary.bytes += written_.bytes;
    summary.files.push_back(written_);
    return stream_.Finish();
  }

 private:
  NpyFile(storage::FileStream stream, std::string name) : stream_(std::move(stream)) {
    written_.name = std::move(name);
  }
  storage::FileStream stream_;
  QuantisedFile written_;
};

// Errors of an array as its rows go by.
class ErrorSums {
 public:
  void Add(const float* weights, const float* rounded, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const double error = std::abs(static_cast<double>(rounded[i]) - weights[i]);
      largest_ = std::max(largest_, error);
      errors_ += error * error;
      squares_ += static_cast<double>(weights[i]) * weights[i];
    }
    count_ += n;
  }
  void Store(QuantisedArray& out) const {
    const auto n = static_cast<double>(std::max<uint64_t>(1, count_));
    out.largest_error = largest_;
    out.rms_error = std::sqrt(errors_ / n);
    out.rms = std::sqrt(squares_ / n);
  }

 private:
  double largest_ = 0, errors_ = 0, squares_ = 0;
  uint64_t count_ = 0;
};

// A segment of a hashed table.
class SegmentWriter {
 public:
  static absl::StatusOr<SegmentWriter> Create(const std::string& folder, const std::string& name,
                                              QuantisedType type, uint64_t rows, uint32_t dim) {
    const bool half = type == QuantisedType::kFp16;
    SegmentWriter out(type, {name, half ? "<f2" : "|i1", rows, dim, 0, 0, 0});
    auto file = NpyFile::Create(folder, name, half ? "<f2" : "|i1", {rows, dim});
    if (!file.ok()) return file.status();
    out.elements_ = std::make_unique<NpyFile>(*std::move(file));
    if (half) return out;
    file = NpyFile::Create(folder, name + ".scale", "<f4", {rows});
    if (!file.ok()) return file.status();
    out.scales_ = std::make_unique<NpyFile>(*std::move(file));
    return out;
  }

  absl::Status Add(Key key, const float* weights) {
    const size_t dim = array_.dim;
    rounded_.resize(dim);
    if (type_ == QuantisedType::kInt8) {
      bytes_.resize(ops::EncodedRowBytes(ops::RowCodec::kInt8, dim));
      ops::EncodeRow(ops::RowCodec::kInt8, weights, dim, bytes_.data());
      ops::DecodeRows(ops::RowCodec::kInt8, bytes_.data(), 1, dim, rounded_.data());
      errors_.Add(weights, rounded_.data(), dim);
      const std::span<const uint8_t> row(bytes_);
      absl::Status s = scales_->Append(row.first(4));
      return s.ok() ? elements_->Append(row.subspan(4)) : s;
    }
    halves_.resize(dim);
    for (size_t i = 0; i < dim; ++i) {
      halves_[i] = ToHalf(weights[i]);
      rounded_[i] = FromHalf(halves_[i]);
      if (std::isinf(rounded_[i])) {
        return absl::OutOfRangeError(absl::StrCat(
            array_.name, ": key ", key.value, " has the weight ", weights[i],
            ", beyond fp16's largest, 65504: use int8, whose scale goes with the row"));
      }
    }
    errors_.Add(weights, rounded_.data(), dim);
    return elements_->Append(BytesOf(halves_.data(), dim));
  }

  absl::Status Finish(QuantiseSummary& summary) {
    errors_.Store(array_);
    summary.arrays.push_back(array_);
    absl::Status s = elements_->Finish(summary);
    if (s.ok() && scales_ != nullptr) s = scales_->Finish(summary);
    return s;
  }

 private:
  SegmentWriter(QuantisedType type, QuantisedArray array) : type_(type), array_(std::move(array)) {}

  QuantisedType type_;
  QuantisedArray array_;
  ErrorSums errors_;
  std::unique_ptr<NpyFile> elements_, scales_;
  std::vector<float> rounded_;
  std::vector<uint8_t> bytes_;
  std::vector<uint16_t> halves_;
};

absl::Status WriteHashed(const CheckpointRows& rows, uint32_t table, const QuantiseOptions& options,
                         QuantiseSummary& summary) {
  const TableSpec& spec = rows.tables().tables[table];
  const uint64_t n = rows.rows(table);
  auto keys = NpyFile::Create(options.output, spec.name + ".keys", "<u8", {n});
  if (!keys.ok()) return keys.status();
  std::vector<SegmentWriter> segments;
  for (const auto& segment : spec.segments) {
    auto writer = SegmentWriter::Create(options.output, absl::StrCat(spec.name, ".", segment.name),
                                        options.type, n, segment.dim);
    if (!writer.ok()) return writer.status();
    segments.push_back(*std::move(writer));
  }
  absl::Status s = rows.ReadAll(table, [&](Position position, const uint8_t* row) {
    const Key key = spec.KeyAtPosition(position);
    absl::Status written = keys->Append(BytesOf(&key.value, 1));
    const auto* weights = reinterpret_cast<const float*>(row);
    for (size_t i = 0; written.ok() && i < segments.size(); ++i) {
      written = segments[i].Add(key, weights);
      weights += spec.segments[i].dim;
    }
    return written;
  });
  if (s.ok()) s = keys->Finish(summary);
  for (SegmentWriter& segment : segments) {
    if (s.ok()) s = segment.Finish(summary);
  }
  return s;
}

absl::Status WriteTensors(const CheckpointRows& rows, uint32_t table,
                          const QuantiseOptions& options, QuantiseSummary& summary) {
  const TableSpec& spec = rows.tables().tables[table];
  const uint32_t dim = rows.layout(table).dim;
  for (const TensorSpec& tensor : spec.tensors) {
    std::vector<float> values(tensor.Rows(dim) * dim);
    for (uint64_t r = 0; r < tensor.Rows(dim); ++r) {
      const Position at(tensor.first.value + r);
      const std::vector<uint8_t> initial = rows.InitialRow(table, spec.KeyAtPosition(at));
      std::memcpy(values.data() + r * dim, initial.data(), size_t{dim} * 4);
    }
    const Position last(tensor.first.value + tensor.Rows(dim) - 1);
    absl::Status s =
        rows.ReadRange(table, tensor.first, last, [&](Position position, const uint8_t* row) {
          std::memcpy(values.data() + (position.value - tensor.first.value) * dim, row,
                      size_t{dim} * 4);
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
    auto file = NpyFile::Create(options.output, tensor.name, "<f4", {tensor.elements});
    if (!file.ok()) return file.status();
    s = file->Append(BytesOf(values.data(), tensor.elements));
    if (s.ok()) s = file->Finish(summary);
    if (!s.ok()) return s;
    summary.arrays.push_back({tensor.name, "<f4", tensor.elements, 1, 0, 0, 0});
  }
  return absl::OkStatus();
}

absl::Status WriteIndex(const CheckpointRows& rows, const QuantiseOptions& options,
                        const QuantiseSummary& summary) {
  Json json{{"format", kQuantisedFormat},
            {"version", kQuantisedVersion},
            {"type", options.type == QuantisedType::kFp16 ? "fp16" : "int8"},
            {"checkpoint", summary.checkpoint},
            {"step", summary.step},
            {"modelHash", rows.manifest().model_hash()},
            {"arrays", Json::array()},
            {"files", Json::array()}};
  for (const QuantisedArray& a : summary.arrays) {
    json["arrays"].push_back(Json{{"name", a.name},
                                  {"dtype", a.dtype},
                                  {"rows", a.rows},
                                  {"dim", a.dim},
                                  {"largestError", a.largest_error},
                                  {"rmsError", a.rms_error},
                                  {"rms", a.rms}});
  }
  for (const QuantisedFile& f : summary.files) {
    json["files"].push_back(
        Json{{"name", f.name}, {"bytes", f.bytes}, {"crc32c", absl::StrFormat("%08x", f.crc32c)}});
  }
  const std::string text = SealQuantisedIndex(json.dump(1));
  auto file = storage::FileStream::Create(absl::StrCat(options.output, "/", kQuantisedIndexName));
  if (!file.ok()) return file.status();
  absl::Status s = file->Append(BytesOf(text.data(), text.size()));
  if (s.ok()) s = file->Finish();
  return s.ok() ? storage::SyncFolder(options.output) : s;
}

}  // namespace

uint16_t ToHalf(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;   // not a number
  if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds beyond the largest
  if (bits < 0x38800000) {
    // Below 2^-14 halves are multiples of 2^-24, and so are floats from 0.5 to 1: the sum rounds.
    const uint32_t sum = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f);
    return static_cast<uint16_t>(sign | (sum - 0x3f000000));
  }
  const uint32_t odd = bits >> 13 & 1;
  return static_cast<uint16_t>(sign | (bits - 0x38000000 + 0xfff + odd) >> 13);
}

float FromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 31, mantissa = half & 1023;
  float value;
  if (exponent == 31) {
    value = std::bit_cast<float>(0x7f800000 | mantissa << 13);
  } else if (exponent == 0) {
    value = static_cast<float>(mantissa) * 0x1p-24f;
  } else {
    value = std::bit_cast<float>((exponent + 112) << 23 | mantissa << 13);
  }
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

absl::StatusOr<QuantiseSummary> QuantiseCheckpoint(const QuantiseOptions& options) {
  const ops::ExactFloatScope exact;
  auto rows = CheckpointRows::Open(options.checkpoint);
  if (!rows.ok()) return rows.status();
  if (absl::Status s = CheckOutsideCheckpoint("the output", options.output, rows->folder());
      !s.ok()) {
    return s;
  }
  std::error_code error;
  if (std::filesystem::exists(options.output, error) &&
      !std::filesystem::is_empty(options.output, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.output, " has something in it; name an empty or new folder"));
  }
  if (absl::Status s = storage::MakeFolder(options.output); !s.ok()) return s;
  QuantiseSummary summary;
  summary.checkpoint = rows->folder();
  summary.step = rows->manifest().step();
  for (uint32_t t = 0; t < rows->tables().tables.size(); ++t) {
    const bool dense = rows->tables().tables[t].kind == TableKind::kDense;
    absl::Status s =
        dense ? WriteTensors(*rows, t, options, summary) : WriteHashed(*rows, t, options, summary);
    if (!s.ok()) return s;
  }
  if (absl::Status s = WriteIndex(*rows, options, summary); !s.ok()) return s;
  return summary;
}

}  // namespace strata
