// What was typed, as plain values: filled by command_line.cc, used by the commands.
#ifndef STRATA_TOOLS_CLI_OPTIONS_H_
#define STRATA_TOOLS_CLI_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

// Where a job comes from.
struct JobSource {
  std::string file;                    // -f; "-": standard input
  std::vector<std::string> overrides;  // --set
};

struct TrainOptions {
  JobSource source;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
};

struct ValidateOptions {
  JobSource source;
  bool json = false;
};

struct UpOptions {
  std::string dir = "./strata-run";
  std::string bin_dir;
  uint32_t servers = 1;
  uint32_t workers = 1;
  double timeout_seconds = 60;
  bool json = false;
};

struct DownOptions {
  std::string dir;  // "": the one of the context, else ./strata-run
  double timeout_seconds = 60;
};

struct SubmitOptions {
  JobSource source;
  std::string scheduler;
  bool wait = false;
  bool resume = false;
  bool overwrite = false;
  double timeout_seconds = 0;  // 0: no limit
  bool json = false;
};

struct ListOptions {
  std::string scheduler;
  bool json = false;
};

struct StatusOptions {
  std::string scheduler;
  std::string job;  // number or name; "": the whole cluster
  bool watch = false;
  bool json = false;
};

struct LogsOptions {
  std::string dir;                 // "": the one of the context
  std::vector<std::string> names;  // processes; none: all
  bool follow = false;
  uint32_t lines = 20;  // of each process, from the end
};

struct CancelOptions {
  std::string scheduler;
  std::string job;
  bool json = false;
};

struct CheckpointCreateOptions {
  std::string scheduler;
  std::string job;
  double timeout_seconds = 600;
  bool json = false;
};

// Of `directory`, or of where the job keeps its checkpoints.
struct CheckpointListOptions {
  std::string scheduler;
  std::string job;
  std::string directory;
  bool json = false;
};

struct CheckpointVerifyOptions {
  std::string directory;
  bool json = false;
};

struct PredictCommandOptions {
  std::string scheduler;
  std::string checkpoint;  // a checkpoint's folder, or one that holds checkpoints: the newest
  std::string job;         // instead: the newest checkpoint of this job
  std::vector<std::string> inputs;
  std::string format;
  std::string output = "-";
  bool json = false;
};

struct GenerateCriteoOptions {
  uint64_t rows = 100000;
  uint64_t vocab = 100000;
  double zipf = 1.05;
  uint64_t seed = 1;
  uint64_t first_row = 0;
  std::string output;
  bool json = false;
};

struct SuperviseOptions {
  std::string dir;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_OPTIONS_H_
