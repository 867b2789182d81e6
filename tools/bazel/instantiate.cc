// A plugin of g++ for what prelude.bzl parses once. g++ writes a precompiled header before it
// instantiates the templates that the header's inline functions use, so every source that reads it
// instantiates them again (Clang has -fpch-instantiate-templates). `#pragma strata instantiate`
// (instantiate.h) has them instantiated where it stands; sources that read the result need no
// plugin.
#include "gcc-plugin.h"
// After gcc-plugin.h, before the rest.
#include "c-family/c-pragma.h"
#include "cp/cp-tree.h"
#include "plugin-version.h"
#include "tree.h"

int plugin_is_GPL_compatible;

namespace {

void Instantiate(cpp_reader*) { instantiate_pending_templates(/*retries=*/0); }

void RegisterPragma(void*, void*) { c_register_pragma("strata", "instantiate", Instantiate); }

}  // namespace

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  if (!plugin_default_version_check(version, &gcc_version)) return 1;
  register_callback(plugin->base_name, PLUGIN_PRAGMAS, RegisterPragma, nullptr);
  return 0;
}
