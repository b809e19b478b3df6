// `wirecall context`: saves servers under names, and sets the current one.
#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <stdexcept>

#include "cli/arguments.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "cli/view/table.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {
namespace {

/// A context as `ls` shows it: without its token.
struct Shown {
  std::string name;
  std::vector<std::string> urls;
  bool token;
  bool current;
};

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 &&
         std::ranges::all_of(name, [](unsigned char c) { return c > ' ' && c != 0x7F; });
}

class ContextCommand final : public Command {
 public:
  explicit ContextCommand(CLI::App& parent)
      : Command(
            parent,
            {.name = "context",
             .does = "Name servers, and choose the current one",
             .usage = "[ls | add NAME | use NAME | rm NAME]",
             .footer = "A context is a name for the URIs of a server and a token: `add` saves the token that is in\n"
                       "$WIRECALL_TOKEN. Commands use the context that --context or $WIRECALL_CONTEXT names,\n"
                       "else the one that `use` has set.\n\n"
                       "Examples:\n"
                       "  wirecall context add lab --url tcp://lab.example:8545\n"
                       "  wirecall context use lab\n"
                       "  wirecall call greet name=Ada --context lab\n"
                       "  wirecall context\n\n",
             .args = Positionals::arguments}) {
    add_value("--url", urls_, "URI", "With `add`: the server; if repeated, the first that can be connected to is used")
        ->allow_extra_args(false);
    app().add_flag("--json", json_, "With `ls`: print JSON");
  }

 private:
  int run() override;
  [[nodiscard]] int list(const SavedContexts& saved) const;
  [[nodiscard]] SavedContext context_to_add(const std::string& name) const;

  std::vector<std::string> urls_;
  bool json_ = false;
};

int ContextCommand::run() {
  const std::string what = args().empty() ? "ls" : args()[0];
  const std::vector<std::string> known{"ls", "add", "use", "rm"};
  if (std::ranges::find(known, what) == known.end()) {
    throw UsageError{fmt::format("context does not know {}{} It takes {}", what, did_you_mean(what, known, "."),
                                 fmt::join(known, ", "))};
  }
  SavedContexts saved = require(load_contexts());
  if (what == "ls") {
    if (args().size() > 1) refuse_unexpected(app(), {args()[1]});
    return list(saved);
  }
  if (args().size() != 2) throw UsageError{fmt::format("context {} takes one name", what)};
  const std::string& name = args()[1];
  const SavedContext* const found = saved.find(name);
  if (what == "add") {
    SavedContext context = context_to_add(name);
    if (found != nullptr) {
      saved.contexts[static_cast<std::size_t>(found - saved.contexts.data())] = std::move(context);
    } else {
      saved.contexts.push_back(std::move(context));
      std::ranges::sort(saved.contexts, {}, &SavedContext::name);
    }
  } else {
    if (found == nullptr) throw UsageError{no_context(name, saved)};
    if (what == "use") {
      saved.current = name;
    } else {
      saved.contexts.erase(saved.contexts.begin() + (found - saved.contexts.data()));
      if (saved.current == name) saved.current.reset();
    }
  }
  require(save_contexts(saved));
  return kSuccess;
}

SavedContext ContextCommand::context_to_add(const std::string& name) const {
  if (!is_name(name)) throw UsageError{"a context's name has 1 to 255 bytes, and no white space or control bytes"};
  if (urls_.empty()) throw UsageError{fmt::format("which server is {}? Say --url URI", name)};
  try {
    for (const std::string& url : urls_) static_cast<void>(Endpoint{url});
  } catch (const std::invalid_argument& wrong) {
    throw UsageError{wrong.what()};
  }
  SavedContext context{.name = name, .urls = urls_, .token = {}};
  if (const char* token = std::getenv("WIRECALL_TOKEN"); token != nullptr && *token != '\0') context.token = token;
  return context;
}

int ContextCommand::list(const SavedContexts& saved) const {
  if (json_) {
    std::vector<Shown> shown;
    for (const SavedContext& context : saved.contexts) {
      shown.push_back({.name = context.name,
                       .urls = context.urls,
                       .token = context.token.has_value(),
                       .current = saved.current == context.name});
    }
    return print(to_json(shown) + '\n');
  }
  if (saved.contexts.empty()) {
    print_stderr("there are no contexts; wirecall context add NAME --url URI adds one\n");
    return kSuccess;
  }
  Table table{{"", "NAME", "URL", "TOKEN"}};
  for (const SavedContext& context : saved.contexts) {
    table.add({saved.current == context.name ? "*" : "", context.name, fmt::format("{}", fmt::join(context.urls, ",")),
               context.token ? "yes" : ""});
  }
  return print(table.text());
}

}  // namespace

std::unique_ptr<Command> context_command(CLI::App& parent) { return std::make_unique<ContextCommand>(parent); }

}  // namespace wirecall::cli
