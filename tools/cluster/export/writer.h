// Writes the arrays of an export's plan, row by row.
// Tested by tests/tools/cluster/export/export_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_WRITER_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/file_io.h"
#include "tools/cluster/export/folder.h"
#include "tools/cluster/export/plan.h"

namespace strata {

// One thread. Memory: kBufferBytes per array of a block.
class ExportWriter {
 public:
  static constexpr size_t kBufferBytes = size_t{256} << 10;

  // All must outlive the writer.
  ExportWriter(const ExportPlan* plan, const ExportFolder* folder, FileSystem& system);
  ~ExportWriter();

  // Makes every file at its full size, where the file system can: a disk that is too small is found
  // before anything is read. RESOURCE_EXHAUSTED: disk full.
  absl::Status Allocate();

  // Blocks in the plan's order, each: Begin, rows x AddRow, End.
  absl::Status Begin(const ExportBlock& block);
  absl::Status AddRow(Key key, const uint8_t* row);
  // INTERNAL: other than the plan's number of rows.
  absl::Status End();

  // CRC32C of each array, by name, of the blocks that ended.
  const std::map<std::string, uint32_t>& checksums() const { return checksums_; }

 private:
  struct Sink {
    const ExportArray* array = nullptr;
    const storage::File* file = nullptr;
    uint64_t at = 0;    // in the file, of the buffer's start
    uint64_t left = 0;  // bytes that may still come
    uint32_t crc = 0;
    std::vector<uint8_t> buffer;
  };
  absl::Status Append(Sink& sink, const uint8_t* bytes, size_t count);
  static absl::Status Flush(Sink& sink);

  const ExportPlan* const plan_;
  const ExportFolder* const folder_;
  FileSystem& system_;
  const ExportBlock* block_ = nullptr;
  uint64_t rows_ = 0;
  std::map<size_t, storage::File> files_;  // of the block, by index
  std::vector<Sink> sinks_;
  std::map<std::string, uint32_t> checksums_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_WRITER_H_
