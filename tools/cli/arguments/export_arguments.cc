#include "tools/cli/arguments/argument_groups.h"
#include "tools/cli/arguments/common_arguments.h"

namespace strata {
namespace {

void AddExport(CLI::App& app, CommandSet& commands) {
  auto [command, o] = commands.Add<ExportCommandOptions>(
      app, "export", "Write a checkpoint's parameters as numpy arrays or safetensors");
  CLI::Option* dir = command
                         ->add_option("--checkpoint", o.checkpoint,
                                      "a checkpoint's folder, or one that holds checkpoints (then "
                                      "the newest)")
                         ->type_name("DIR");
  command->add_option("--job", o.job, "instead: number or name of a job")
      ->type_name("JOB")
      ->excludes(dir);
  command->add_option("-o,--output", o.output, "folder to write to")
      ->required()
      ->type_name("DIR")
      ->check(NamedFolder());
  command
      ->add_option("--format", o.format,
                   "npy (one file for each array), safetensors (shards of many), or "
                   "delta (one file of rows to put and rows to remove)")
      ->capture_default_str()
      ->check(CLI::IsMember({"npy", "safetensors", "delta"}));
  command
      ->add_option("--since", o.since,
                   "only what changed since an older checkpoint of the job, and keys of rows that "
                   "are gone: its step, or its folder")
      ->type_name("STEP");
  command->add_option("--table", o.table, "only this one: dense, features, or of spec.tables")
      ->type_name("TABLE");
  command->add_flag("--with-state", o.with_state,
                    "optimizer state, last step and number of updates of each row, too");
  command->add_option("--shard-bytes", o.shard_bytes, "safetensors: bytes of a file (default 4GiB)")
      ->type_name("BYTES");
  command->add_flag("--overwrite", o.overwrite,
                    "replace an export that is in the folder (nothing else there)");
  AddCluster(command, o.cluster);
  AddJson(command, o.json);
}

void AddImport(CLI::App& app, CommandSet& commands) {
  auto [command, o] = commands.Add<ImportCommandOptions>(
      app, "import",
      "Make a checkpoint of pretrained embeddings, from which a job starts "
      "(spec.model.initFrom: {checkpoint: DIR, newTensors: allow})");
  AddSource(command, o.source);
  command
      ->add_option("--table", o.tables,
                   "which table the rows are of (default: the only one); again for another one, "
                   "with its own --keys, --rows and --field, in the same order")
      ->type_name("TABLE");
  command
      ->add_option("--keys", o.keys,
                   "whose the rows are, in their order: a text file of one value a line, or an npy "
                   "array of integers")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--rows", o.rows,
                   "the embeddings: an npy or safetensors array (n, dim) of float32, float64, "
                   "float16 or bfloat16")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--tensor", o.tensors,
                   "the array in a safetensors file (default: its only one); with several such "
                   "files one each, in their order")
      ->type_name("NAME");
  CLI::Option* field =
      command
          ->add_option(
              "--field", o.fields,
              "the field whose values the keys are, by its name, else its column, else its "
              "number from 0 (where no name or column is a number): they are hashed as its "
              "are in the data")
          ->type_name("FIELD");
  command
      ->add_flag("--raw-keys", o.raw_keys,
                 "the keys are feature ids, decimal or 0x..., as in libfm, libsvm and libffm data")
      ->excludes(field);
  command->add_option("-o,--output", o.output, "folder to write to; new, or empty")
      ->required()
      ->type_name("DIR")
      ->check(NamedFolder());
  AddJson(command, o.json);
}

void AddGetRow(CLI::App& app, CommandSet& commands) {
  auto [command, o] = commands.Add<GetRowOptions>(
      app, "get-row", "Show one row: of a checkpoint, or of a running job as its servers have it");
  CLI::Option* dir = command
                         ->add_option("--checkpoint", o.checkpoint,
                                      "a checkpoint's folder, or one that holds checkpoints (then "
                                      "the newest)")
                         ->type_name("DIR");
  command->add_option("--job", o.job, "instead: number or name of a job")
      ->type_name("JOB")
      ->excludes(dir);
  command
      ->add_option(
          "--table", o.table,
          "dense, features, or of spec.tables (default: that of the field, or the only one)")
      ->capture_default_str()
      ->type_name("TABLE");
  command->add_option("--key", o.key, "feature id, decimal or 0x...")->type_name("KEY");
  command
      ->add_option("--field", o.field,
                   "with --value: the field, by its name (spec.fields; criteo: C1..C26, I1..I13; "
                   "csv: a column), else its column, else its number from 0 (where no name or "
                   "column is a number)")
      ->type_name("FIELD");
  command->add_option("--value", o.value, "a value of the field, as it stands in the data")
      ->type_name("TEXT");
  command->add_option("--position", o.position, "instead: where the row lies, decimal or 0x...")
      ->type_name("POSITION");
  AddCluster(command, o.cluster);
  AddJson(command, o.json);
}

void AddDelta(CLI::App& app, CommandSet& commands) {
  auto [command, o] = commands.Add<DeltaCommandOptions>(
      app, "delta", "Check a delta or a stream of removed keys, and show what it holds");
  command
      ->add_option("path", o.path,
                   "a file of export --format delta or of spec.output.removed, or a folder of them")
      ->required()
      ->type_name("FILE");
  command->add_flag("--rows", o.rows,
                    "a line for each row and each removed key on stdout, the rest on stderr");
  AddJson(command, o.json);
}

}  // namespace

void AddModelCommands(CLI::App& app, CommandSet& commands) {
  AddExport(app, commands);
  AddImport(app, commands);
  AddGetRow(app, commands);
  AddDelta(app, commands);
}

}  // namespace strata
