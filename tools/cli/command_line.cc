#include "tools/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/nearest.h"
#include "tools/cli/version.h"

namespace strata {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 ok, 1 the job failed, 2 wrong usage, 3 no scheduler answers, 4 denied, 5 "
    "timeout,"
    "\n130 interrupted. Data go to stdout, messages to stderr.";

// Holds the options of every command while CLI11 fills them.
struct Slots {
  VersionOptions version;
  TrainOptions train;
  ValidateOptions validate;
  UpOptions up;
  DownOptions down;
  SubmitOptions submit;
  ListOptions list;
  StatusOptions status;
  LogsOptions logs;
  CancelOptions cancel;
  CheckpointCreateOptions create;
  CheckpointListOptions checkpoints;
  CheckpointVerifyOptions verify;
  PredictCommandOptions predict;
  GenerateCriteoOptions generate;
  SuperviseOptions supervise;
};

// CLI11's own message tells the largest double in 309 digits.
CLI::Validator NumberThat(const char* what, bool (*fits)(double)) {
  return CLI::Validator(
      [what, fits](std::string& text) {
        double number = 0;
        const bool good = absl::SimpleAtod(text, &number) && std::isfinite(number) && fits(number);
        return good ? std::string() : absl::StrCat("'", text, "' is not a number ", what);
      },
      "", what);
}
CLI::Validator NotNegative() {
  return NumberThat("from 0 on", [](double x) { return x >= 0; });
}
CLI::Validator Positive() {
  return NumberThat("above 0", [](double x) { return x > 0; });
}

class Parser {
 public:
  explicit Parser(CLI::App& app) : app_(app) {
    AddLocal();
    AddCluster();
    AddJobs();
    AddCheckpoints();
    AddData();
  }

  std::optional<Command> Chosen() const {
    for (const auto& [app, get] : commands_) {
      if (app->parsed()) return get();
    }
    return std::nullopt;
  }

 private:
  // `slot` becomes the command when its subcommand is on the line.
  template <typename Options>
  CLI::App* Add(CLI::App& parent, const char* name, const char* help, Options& slot) {
    CLI::App* sub = parent.add_subcommand(name, help);
    commands_.emplace_back(sub, [&slot] { return Command(slot); });
    return sub;
  }

  static void Json(CLI::App* sub, bool& json) {
    sub->add_flag("--json", json, "print JSON on stdout");
  }
  static void Source(CLI::App* sub, JobSource& source) {
    sub->add_option("-f,--file", source.file, "job file, YAML or JSON ('-': standard input)")
        ->required()
        ->type_name("FILE");
    sub->add_option("--set", source.overrides,
                    "change a field: --set spec.training.batchSize=4096 (again for more; relative "
                    "paths are relative to the job file)")
        ->type_name("PATH=VALUE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  static void Scheduler(CLI::App* sub, std::string& address) {
    sub->add_option("--scheduler", address, "default: the cluster that 'strata up' started last")
        ->type_name("HOST:PORT");
  }
  static void Fresh(CLI::App* sub, bool& resume, bool& overwrite) {
    CLI::Option* r = sub->add_flag("--resume", resume,
                                   "go on from the newest checkpoint in spec.checkpoint.directory");
    sub->add_flag("--overwrite", overwrite,
                  "remove the checkpoints in spec.checkpoint.directory first (nothing else there)")
        ->excludes(r);
  }
  static void Timeout(CLI::App* sub, double& seconds, const char* help) {
    sub->add_option("--timeout", seconds, help)->type_name("SECONDS")->check(NotNegative());
  }

  void AddLocal() {
    CLI::App* train =
        Add(app_, "train", "Train a job in this process, without a cluster", s_.train);
    Source(train, s_.train.source);
    Fresh(train, s_.train.resume, s_.train.overwrite);
    Json(train, s_.train.json);
    CLI::App* validate =
        Add(app_, "validate", "Check a job file and print it with every default", s_.validate);
    Source(validate, s_.validate.source);
    Json(validate, s_.validate.json);
    Json(Add(app_, "version", "Print the version", s_.version), s_.version.json);
    CLI::App* supervise = Add(app_, "supervise", "", s_.supervise);
    supervise->group("");  // what `up` starts in the background
    supervise->add_option("--dir", s_.supervise.dir)->required();
  }

  void AddCluster() {
    CLI::App* up = Add(app_, "up", "Start a cluster of real processes on this machine", s_.up);
    up->add_option("--servers", s_.up.servers, "server processes")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    up->add_option("--workers", s_.up.workers, "worker processes")
        ->capture_default_str()
        ->check(CLI::Range(1, 256));
    up->add_option("--dir", s_.up.dir, "where everything is kept")
        ->capture_default_str()
        ->type_name("DIR");
    up->add_option("--bin-dir", s_.up.bin_dir, "where the daemons are (default: beside strata)")
        ->type_name("DIR");
    Timeout(up, s_.up.timeout_seconds, "how long the processes have to register (default 60)");
    Json(up, s_.up.json);
    CLI::App* down = Add(app_, "down", "Stop the cluster that 'up' started", s_.down);
    down->add_option("--dir", s_.down.dir, "its folder (default: that of the last 'up')")
        ->type_name("DIR");
    Timeout(down, s_.down.timeout_seconds, "how long the processes have to end (default 60)");
    CLI::App* logs = Add(app_, "logs", "Show what the processes of 'up' say", s_.logs);
    logs->add_option("names", s_.logs.names, "processes, as in server-0 (default: all)")
        ->type_name("PROCESS");
    logs->add_flag("-f,--follow", s_.logs.follow, "go on with what comes");
    logs->add_option("-n,--lines", s_.logs.lines, "last lines of each")->capture_default_str();
    logs->add_option("--dir", s_.logs.dir, "folder of the cluster (default: that of the last 'up')")
        ->type_name("DIR");
  }

  void AddJobs() {
    CLI::App* submit = Add(app_, "submit", "Hand a job to a cluster", s_.submit);
    Source(submit, s_.submit.source);
    Scheduler(submit, s_.submit.scheduler);
    submit->add_flag("-w,--wait", s_.submit.wait, "show progress and wait for the end");
    Timeout(submit, s_.submit.timeout_seconds, "with --wait: stop waiting after this long");
    Fresh(submit, s_.submit.resume, s_.submit.overwrite);
    Json(submit, s_.submit.json);
    CLI::App* list = Add(app_, "list", "List the jobs of a cluster", s_.list);
    Scheduler(list, s_.list.scheduler);
    Json(list, s_.list.json);
    CLI::App* status = Add(app_, "status", "Show a job, or the cluster and its jobs", s_.status);
    status->add_option("job", s_.status.job, "number or name")->type_name("JOB");
    Scheduler(status, s_.status.scheduler);
    status->add_flag("-w,--watch", s_.status.watch, "go on until the job is at its end");
    Json(status, s_.status.json);
    CLI::App* cancel = Add(app_, "cancel", "Stop a job", s_.cancel);
    cancel->add_option("job", s_.cancel.job, "number or name")->required()->type_name("JOB");
    Scheduler(cancel, s_.cancel.scheduler);
    Json(cancel, s_.cancel.json);
  }

  void AddCheckpoints() {
    CLI::App* group = app_.add_subcommand("checkpoint", "Make, list and verify checkpoints");
    group->require_subcommand(1);
    CLI::App* create = Add(*group, "create", "Make a checkpoint of a running job now", s_.create);
    create->add_option("job", s_.create.job, "number or name")->required()->type_name("JOB");
    Scheduler(create, s_.create.scheduler);
    Timeout(create, s_.create.timeout_seconds, "how long to wait for it (default 600)");
    Json(create, s_.create.json);
    CLI::App* list = Add(*group, "list", "List complete checkpoints", s_.checkpoints);
    CLI::Option* dir = list->add_option("directory", s_.checkpoints.directory,
                                        "spec.checkpoint.directory of a job")
                           ->type_name("DIR");
    list->add_option("--job", s_.checkpoints.job, "instead: number or name of a job")
        ->type_name("JOB")
        ->excludes(dir);
    Scheduler(list, s_.checkpoints.scheduler);
    Json(list, s_.checkpoints.json);
    CLI::App* verify = Add(*group, "verify", "Read a checkpoint whole and check it", s_.verify);
    verify
        ->add_option("directory", s_.verify.directory,
                     "a checkpoint's folder, or one that holds checkpoints (then the newest)")
        ->required()
        ->type_name("DIR");
    Json(verify, s_.verify.json);
  }

  void AddData() {
    CLI::App* predict = Add(
        app_, "predict", "Score lines of data with a model: one 'label,score' a line", s_.predict);
    predict->add_option("inputs", s_.predict.inputs, "files to score, in order")
        ->required()
        ->type_name("FILE");
    CLI::Option* dir =
        predict->add_option("--checkpoint", s_.predict.checkpoint, "folder of a checkpoint")
            ->type_name("DIR");
    predict->add_option("--job", s_.predict.job, "instead: number or name of a job")
        ->type_name("JOB")
        ->excludes(dir);
    predict->add_option("--format", s_.predict.format, "default: the format the job trained on")
        ->check(CLI::IsMember({"criteo", "libfm", "libsvm", "csv"}));
    predict->add_option("-o,--output", s_.predict.output, "default: stdout")->type_name("FILE");
    Scheduler(predict, s_.predict.scheduler);
    predict->add_flag("--json", s_.predict.json, "print lines, AUC and logloss as JSON at the end");
    CLI::App* generate = app_.add_subcommand("generate", "Make synthetic data");
    generate->require_subcommand(1);
    GenerateCriteoOptions& g = s_.generate;
    CLI::App* criteo =
        Add(*generate, "criteo", "Criteo-shaped lines whose labels a DeepFM-like teacher drew", g);
    criteo->add_option("--rows", g.rows, "lines")->capture_default_str()->check(Positive());
    criteo->add_option("--vocab", g.vocab, "ids over all 26 fields")
        ->capture_default_str()
        ->check(Positive());
    criteo->add_option("--zipf", g.zipf, "exponent of how often ids occur")
        ->capture_default_str()
        ->check(NotNegative());
    criteo->add_option("--seed", g.seed, "the same seed makes the same lines")
        ->capture_default_str();
    criteo
        ->add_option(
            "--first-row", g.first_row,
            "number of the first line: rows after those of a training file make its held-out file")
        ->capture_default_str();
    criteo->add_option("-o,--output", g.output, "file to write")->required()->type_name("FILE");
    Json(criteo, g.json);
  }

  CLI::App& app_;
  Slots s_;
  std::vector<std::pair<CLI::App*, std::function<Command()>>> commands_;
};

// The deepest subcommand that was recognised.
const CLI::App* Deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// "; did you mean '--wait'?" for an argument that nothing expected, or "".
std::string Suggest(const CLI::App& root, int argc, const char* const* argv) {
  const CLI::App* app = Deepest(&root);
  std::vector<std::string> options, names;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  for (const CLI::App* sub : app->get_subcommands(nullptr)) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string argument = word.substr(0, word.find('='));
    const bool is_option = absl::StartsWith(argument, "--");
    const std::vector<std::string>& known = is_option ? options : names;
    if (argument == app->get_name() || std::count(known.begin(), known.end(), argument)) continue;
    const std::string nearest = Nearest(argument, known);
    if (!nearest.empty()) return absl::StrCat("; did you mean '", nearest, "'?");
  }
  return "";
}

}  // namespace

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv) {
  CLI::App app("Strata: a sharded, tiered parameter server for huge sparse models", "strata");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_help_all_flag("--help-all", "help of every command");
  app.set_version_flag("--version", std::string("strata ") + kVersion);
  Parser parser(app);
  ParsedCommandLine parsed;
  if (argc <= 1) return {std::nullopt, app.help(), 2};
  try {
    app.parse(argc, argv);
    parsed.command = parser.Chosen();
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    parsed.exit_code = app.exit(e, out, err) == 0 ? 0 : 2;
    if (parsed.exit_code == 0) {
      parsed.text = out.str();
      return parsed;
    }
    std::string place = "strata";
    for (const CLI::App* sub = &app; !sub->get_subcommands().empty();) {
      sub = sub->get_subcommands().front();
      absl::StrAppend(&place, " ", sub->get_name());
    }
    const std::string what = e.what();
    parsed.text =
        absl::StrCat(place, ": ", what, Suggest(app, argc, argv), "\nTry: ", place, " --help\n");
  }
  return parsed;
}

}  // namespace strata
