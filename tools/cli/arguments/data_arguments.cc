#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddPredict(CLI::App& app, CommandSet& commands) {
  auto [predict, o] = commands.Add<PredictCommandOptions>(
      app, "predict", "Score lines of data with a model: one 'label,score' a line");
  predict
      ->add_option(
          "inputs", o.inputs,
          "files to score, in order, whose lines need no label; - is standard input, scored "
          "as it comes")
      ->required()
      ->type_name("FILE");
  CLI::Option* dir =
      predict->add_option("--checkpoint", o.checkpoint, "folder of a checkpoint")->type_name("DIR");
  predict->add_option("--job", o.job, "instead: number or name of a job")
      ->type_name("JOB")
      ->excludes(dir);
  predict->add_option("--format", o.format, "default: the format the job trained on")
      ->check(CLI::IsMember({"criteo", "criteo_csv", "libfm", "libsvm", "libffm", "csv"}));
  predict
      ->add_option("--vocabulary", o.vocabularies,
                   "another vocabulary file of a field, as where the job's is elsewhere now; it "
                   "begins with the values that the model knows; may be repeated")
      ->type_name("FIELD=FILE")
      ->allow_extra_args(false);
  predict->add_option("-o,--output", o.output, "default: stdout; a file appears when all is scored")
      ->type_name("FILE");
  predict->add_flag("--scores-only", o.scores_only, "leave the labels out");
  predict->add_flag("--header", o.header,
                    "begin with a line that names the columns: LABEL,...,LABEL_score,...");
  predict
      ->add_option(
          "--max-bad-lines", o.max_bad_lines,
          "bad lines to leave out of the output; default: spec.data.maxBadLines of the job")
      ->type_name("N")
      ->check(NotNegative());
  predict
      ->add_option("--dram-bytes", o.dram_bytes,
                   "hard limit of the model's rows in memory, as in 2GiB; the rest lies on SSD in "
                   "TMPDIR; default: spec.storage.dramBytesPerServer of the job; 0: no limit")
      ->type_name("SIZE");
  AddCluster(predict, o.cluster);
  predict->add_flag("--json", o.json, "print lines, AUC and logloss as JSON at the end");
}

void AddGenerateCriteo(CLI::App& generate, CommandSet& commands) {
  auto [criteo, o] = commands.Add<GenerateCriteoOptions>(
      generate, "criteo", "Criteo-shaped lines whose labels a DeepFM-like teacher drew");
  criteo->add_option("--rows", o.rows, "lines")->capture_default_str()->check(Positive());
  criteo->add_option("--vocab", o.vocab, "ids over all 26 fields")
      ->capture_default_str()
      ->check(Positive());
  criteo->add_option("--zipf", o.zipf, "exponent of how often ids occur")
      ->capture_default_str()
      ->check(NotNegative());
  criteo->add_option("--seed", o.seed, "the same seed makes the same lines")
      ->capture_default_str()
      ->check(NotNegative());
  criteo
      ->add_option(
          "--first-row", o.first_row,
          "number of the first line: rows after those of a training file make its held-out file")
      ->capture_default_str()
      ->check(NotNegative());
  criteo->add_option("-o,--output", o.output, "file to write; -: stdout")
      ->required()
      ->type_name("FILE");
  AddJson(criteo, o.json);
}

void AddGenerateMovielens(CLI::App& generate, CommandSet& commands) {
  auto [movielens, o] = commands.Add<GenerateMovielensOptions>(
      generate, "movielens", "Visits of users to items: histories, clicks, ratings, weights");
  movielens->add_option("--rows", o.rows, "lines")->capture_default_str()->check(Positive());
  movielens->add_option("--users", o.users, "users")->capture_default_str()->check(Positive());
  movielens->add_option("--items", o.items, "items, at least 64")
      ->capture_default_str()
      ->check(Positive());
  movielens->add_option("--history", o.history, "most clicked items that a line tells")
      ->capture_default_str()
      ->check(Positive());
  movielens->add_option("--seed", o.seed, "the same seed makes the same lines")
      ->capture_default_str()
      ->check(NotNegative());
  movielens
      ->add_option(
          "--first-row", o.first_row,
          "number of the first line: rows after those of a training file make its held-out file")
      ->capture_default_str()
      ->check(NotNegative());
  movielens
      ->add_option("-o,--output", o.output,
                   "csv to write, _FILE.teacher.json beside it; -: stdout, without that")
      ->required()
      ->type_name("FILE");
  AddJson(movielens, o.json);
}

}  // namespace

void AddDataCommands(CLI::App& app, CommandSet& commands) {
  AddPredict(app, commands);
  CLI::App* generate = app.add_subcommand("generate", "Make synthetic data");
  generate->require_subcommand(1);
  AddGenerateCriteo(*generate, commands);
  AddGenerateMovielens(*generate, commands);
}

}  // namespace strata
