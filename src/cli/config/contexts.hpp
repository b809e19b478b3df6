// Contexts: servers with a name, which one says in place of their URIs and tokens, kept in a file of the user's. Here
// the file is read and written; what is done with a context is command.hpp's and context.hpp's.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace wirecall::cli {

struct SavedContext {
  std::string name;
  std::vector<std::string> urls;
  std::optional<std::string> token;
};

struct SavedContexts {
  std::optional<std::string> current;  ///< the name of the one that is used where nothing else is said
  std::vector<SavedContext> contexts;  ///< by name

  [[nodiscard]] const SavedContext* find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;
};

/// $XDG_CONFIG_HOME/wirecall/contexts.json, or ~/.config/wirecall/contexts.json; empty where the user has no home.
[[nodiscard]] std::string contexts_path();
/// None where there is no file. Else the error is a text for the user.
[[nodiscard]] std::expected<SavedContexts, std::string> load_contexts();
/// Readable for the user alone, and whole or not at all.
[[nodiscard]] std::expected<void, std::string> save_contexts(const SavedContexts& contexts);

}  // namespace wirecall::cli
