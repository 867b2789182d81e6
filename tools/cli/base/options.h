// What was typed, as plain values: filled by tools/cli/arguments/command_line.h, used by the
// commands.
// Tested by tests/tools/cli/arguments/command_line_test.cc
#ifndef STRATA_TOOLS_CLI_BASE_OPTIONS_H_
#define STRATA_TOOLS_CLI_BASE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace strata {

// Where a job comes from.
struct JobSource {
  std::string file;                    // -f; "-": standard input
  std::vector<std::string> overrides;  // --set
};

// Which cluster a command talks to. tools/cli/context/choice.h says what counts where several are
// given, or none.
struct ClusterOptions {
  std::string scheduler;  // HOST:PORT
  std::string context;    // name of one
  std::string certs;      // folder of ca.crt, tls.crt and tls.key
  bool insecure = false;  // without TLS
};

struct ContextAddOptions {
  std::string name;
  std::string scheduler;
  std::string certs;
  bool insecure = false;
  bool json = false;
};

struct ContextUseOptions {
  std::string name;
  bool json = false;
};

struct ContextListOptions {
  bool json = false;
};

struct ContextRemoveOptions {
  std::string name;
  bool json = false;
};

struct VersionOptions {
  bool json = false;
};

struct TrainOptions {
  JobSource source;
  std::vector<std::string> data_roots;  // below which the job may read and write; none: anywhere
  bool resume = false;
  bool overwrite = false;
  bool json = false;
};

struct CleanOptions {
  std::vector<std::string> folders;
  bool all = false;
  bool dry_run = false;
  bool json = false;
};

struct ValidateOptions {
  JobSource source;
  bool schema = false;  // print the model's schema instead of the job
  std::string form;     // "fields", "columns"; empty: as the job has it
  bool json = false;
};

struct UpOptions {
  std::string dir = "./strata-run";
  std::string bin_dir;
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::vector<std::string> devices;         // of each server; none: servers have no GPU
  std::vector<std::string> worker_devices;  // of each worker; none: workers look for one
  std::vector<std::string> zones;           // of each server; none: each is a zone
  std::vector<std::string> data_roots;      // of all processes; none: jobs use any path
  bool insecure = false;                    // without TLS
  double timeout_seconds = 60;
  bool json = false;
};

struct DownOptions {
  std::string dir;  // "": the one of the context, else ./strata-run
  double timeout_seconds = 60;
  bool json = false;
};

struct SubmitOptions {
  JobSource source;
  ClusterOptions cluster;
  bool wait = false;
  bool resume = false;
  bool overwrite = false;
  double timeout_seconds = 0;  // 0: no limit
  bool json = false;
};

struct ListOptions {
  ClusterOptions cluster;
  bool json = false;
};

struct StatusOptions {
  ClusterOptions cluster;
  std::string job;  // number or name; "": the whole cluster
  bool watch = false;
  bool json = false;
};

struct LogsOptions {
  std::string dir;                 // "": the one of the context
  std::vector<std::string> names;  // processes; none: all
  bool follow = false;
  uint32_t lines = 20;  // of each process, from the end
  bool json = false;    // a line of JSON for each line
};

struct CancelOptions {
  ClusterOptions cluster;
  std::string job;
  bool json = false;
};

struct CheckpointCreateOptions {
  ClusterOptions cluster;
  std::string job;
  double timeout_seconds = 600;
  bool json = false;
};

struct CertsInitOptions {
  std::string dir = "./strata-certs";
  std::string cluster;  // "": a new one
  int days = 3650;
  bool json = false;
};

// Of `issue` and of `renew`.
struct CertsOrder {
  std::string dir = "./strata-certs";
  std::string role;
  std::string name;
  int days = 90;
  bool json = false;
};

struct CertsIssueOptions {
  CertsOrder order;
};

struct CertsRenewOptions {
  CertsOrder order;  // with `all` of nobody in particular
  bool all = false;
};

struct CertsRolloverOptions {
  std::string dir = "./strata-certs";
  std::string step;  // begin, switch or end
  int days = 3650;   // of begin
  bool json = false;
};

struct CertsRevokeOptions {
  std::string dir = "./strata-certs";
  std::string role;
  std::string name;
  std::string serial;  // "": all whose files are there
  bool json = false;
};

struct CertsShowOptions {
  std::string dir = "./strata-certs";
  bool json = false;
};

// Of `directory`, or of where the job keeps its checkpoints.
struct CheckpointListOptions {
  ClusterOptions cluster;
  std::string job;
  std::string directory;
  bool json = false;
};

struct CheckpointVerifyOptions {
  std::string directory;
  bool json = false;
};

struct CheckpointShowOptions {
  std::string directory;
  bool json = false;
};

struct CheckpointDiffOptions {
  std::string a;
  std::string b;
  size_t top = 10;
  bool json = false;
};

struct CheckpointRepairOptions {
  std::string directory;
  bool dry_run = false;
  bool json = false;
};

struct CheckpointQuantiseOptions {
  std::string checkpoint;
  std::string output;
  std::string type = "fp16";
  bool json = false;
};

struct PredictCommandOptions {
  ClusterOptions cluster;
  std::string checkpoint;  // a checkpoint's folder, or one that holds checkpoints: the newest
  std::string job;         // instead: the newest checkpoint of this job
  std::vector<std::string> inputs;
  std::string format;
  std::vector<std::string> vocabularies;  // FIELD=FILE
  std::string output = "-";
  bool scores_only = false;
  bool header = false;
  std::optional<uint64_t> max_bad_lines;  // none: the job's
  std::string dram_bytes;                 // empty: the job's; "0": none
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

struct GenerateMovielensOptions {
  uint64_t rows = 100000;
  uint64_t first_row = 0;
  uint32_t users = 2000;
  uint32_t items = 1000;
  uint32_t history = 50;
  uint64_t seed = 1;
  std::string output;
  bool json = false;
};

// Of `checkpoint`, or of the newest checkpoint of `job`.
struct ExportCommandOptions {
  ClusterOptions cluster;
  std::string checkpoint;
  std::string job;
  std::string output;
  std::string format = "npy";
  std::string table;  // "": all
  bool with_state = false;
  std::string shard_bytes;  // as in "4GiB"; "": the default
  std::string since;        // step of a checkpoint, or its folder; "": everything
  bool overwrite = false;
  bool json = false;
};

// The k-th of `tables`, `keys`, `rows` and `fields` belong together; the k-th of `tensors` goes
// with the k-th safetensors file of `rows`.
struct ImportCommandOptions {
  JobSource source;
  std::vector<std::string> tables;  // none: the only one
  std::vector<std::string> keys;
  std::vector<std::string> rows;
  std::vector<std::string> tensors;  // none: the only one of each file
  std::vector<std::string> fields;   // whose values keys are; none with raw_keys
  bool raw_keys = false;
  std::string output;
  bool json = false;
};

// Of `checkpoint`, or of `job` as its servers have it; by key, by field and value, or by position.
struct GetRowOptions {
  ClusterOptions cluster;
  std::string checkpoint;
  std::string job;
  std::string table;  // "": the field's, or the only hashed one
  std::string key;
  std::string field;
  std::vector<std::string> value;  // one, possibly "", or none
  std::string position;
  bool json = false;
};

struct DeltaCommandOptions {
  std::string path;   // a file, or a folder of them
  bool rows = false;  // each of them, not only how many
  bool json = false;
};

// Curves of `files`, which are metrics files of jobs.
struct PlotOptions {
  std::vector<std::string> files;
  std::string x = "step";  // step, examples or time
  std::string y;           // a member of the files' lines
  std::string output;
  std::vector<std::string> labels;  // of the files, in their order; none: their names
  std::string title;
  bool log_x = false;
  bool log_y = false;
  int width = 800;
  int height = 480;
};

struct NodesOptions {
  ClusterOptions cluster;
  bool quarantined = false;  // instead: what servers keep of jobs that nobody knows
  bool json = false;
};

struct NodesAdoptOptions {
  ClusterOptions cluster;
  std::string job;  // as tools/cli/inspect/quarantine_text.h reads it
  bool json = false;
};

struct NodesPurgeOptions {
  ClusterOptions cluster;
  std::string node;
  std::string job;  // likewise
  bool json = false;
};

struct ShardsOptions {
  ClusterOptions cluster;
  std::string job;
  bool json = false;
};

struct EventsOptions {
  ClusterOptions cluster;
  std::string job;    // number or name; "": all
  std::string since;  // as tools/cli/inspect/text.h reads it; "": all that are kept
  bool follow = false;
  bool json = false;
};

struct TopOptions {
  ClusterOptions cluster;
  double interval_seconds = 1;
  bool once = false;
  bool json = false;
};

struct ExplainOptions {
  std::string path;    // "": the top
  std::string schema;  // job file whose schema is explained; "": a field is
  bool recursive = false;
  bool json = false;
};

struct EstimateOptions {
  JobSource source;
  uint64_t rows = 0;  // features that get a row; 0: the distinct keys of the training data
  bool json = false;
};

struct CompletionOptions {
  std::string shell;  // bash, zsh or fish
};

struct ManOptions {
  std::string output;  // a folder
};

struct SuperviseOptions {
  std::string dir;
};

using Command =
    std::variant<VersionOptions, TrainOptions, CleanOptions, ValidateOptions, UpOptions,
                 DownOptions, SubmitOptions, ListOptions, StatusOptions, LogsOptions, CancelOptions,
                 CertsInitOptions, CertsIssueOptions, CertsRenewOptions, CertsRolloverOptions,
                 CertsRevokeOptions, CertsShowOptions, ContextAddOptions, ContextUseOptions,
                 ContextListOptions, ContextRemoveOptions, CheckpointCreateOptions,
                 CheckpointListOptions, CheckpointVerifyOptions, CheckpointShowOptions,
                 CheckpointDiffOptions, CheckpointRepairOptions, CheckpointQuantiseOptions,
                 PredictCommandOptions, GenerateCriteoOptions, GenerateMovielensOptions,
                 ExportCommandOptions, ImportCommandOptions, GetRowOptions, DeltaCommandOptions,
                 PlotOptions, NodesOptions, NodesAdoptOptions, NodesPurgeOptions, ShardsOptions,
                 EventsOptions, TopOptions, ExplainOptions, EstimateOptions, CompletionOptions,
                 ManOptions, SuperviseOptions>;

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_BASE_OPTIONS_H_
