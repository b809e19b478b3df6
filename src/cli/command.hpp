// Command: one subcommand on the command line: its flags and its help, and what it does once they are parsed. It is
// declared where what it does is implemented; main.cpp has the list of all. And what commands have in common there: how
// the server is chosen, what a wrong command line is refused with. This is where the environment is read.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <expected>
#include <limits>

#include "cli/config/contexts.hpp"
#include "cli/config/flags.hpp"
#include "cli/target.hpp"

namespace wirecall::cli {

/// What is wrong with a command line that the parser took.
struct UsageError {
  std::string text;
};

template <class T>
T require(std::expected<T, std::string> value, const std::string& what = {}) {
  if (!value) throw UsageError{what.empty() ? value.error() : what + ": " + value.error()};
  return *std::move(value);
}
void require(const std::expected<void, std::string>& done);

/// The exit status in a help text, and what ARGs are.
extern const char* const kExitCodes;
extern const char* const kArgumentsHelp;

/// The guess that follows a word that is not known, or `else_this`.
[[nodiscard]] std::string did_you_mean(std::string_view arg, const std::vector<std::string>& names,
                                       std::string_view else_this);
/// Sets what stands between the command's name and its flags in the line of its usage. CLI11 does not know of ARGs,
/// because its lists would take [1,2] apart.
void set_usage(CLI::App& command, const std::string& usage);

/// The most that a flag counts to.
inline constexpr std::uint64_t kCountMax = std::numeric_limits<std::uint32_t>::max();
/// For a flag of that name: refuses what is no whole number of that range, as the flag of an option does.
[[nodiscard]] CLI::Validator whole_number(const std::string& name, std::uint64_t min, std::uint64_t max);
/// The same with fractions.
[[nodiscard]] CLI::Validator number(const std::string& name, double min, double max);

/// Refuses what is no pattern: no `name`, as a topic.
void require_pattern(std::string_view pattern, std::string_view name);

/// What is wrong with a word that is no command.
[[nodiscard]] std::string unknown_command(std::string_view arg, const std::vector<std::string>& names);
/// Refuses the first word that a command knows nothing of.
[[noreturn]] void refuse_unexpected(const CLI::App& command, const std::vector<std::string>& args);

/// What is wrong with the name of a context that is none.
[[nodiscard]] std::string no_context(const std::string& name, const SavedContexts& saved);

/// --url, --context, or what stands in for them.
class ServerFlags {
 public:
  explicit ServerFlags(CLI::App& command);
  ServerFlags(ServerFlags&&) = delete;

  /// At least one URI; the token is for nobody else. Throws UsageError.
  [[nodiscard]] SavedContext server() const;
  /// The same, for a command of that name that needs a connection: none of the URIs is of udp.
  [[nodiscard]] SavedContext server_with_connection(const std::string& command) const;

 private:
  std::vector<std::string> urls_;
  std::string context_;
};

/// The token that was given, or else that of $WIRECALL_TOKEN, or else the one that is kept for the server; empty for
/// none.
[[nodiscard]] std::string token_for(const SavedContext& server, std::string given);

class Command {
 public:
  /// Whether further arguments are its ARGs.
  enum class Positionals { none, arguments };
  struct About {
    std::string name;
    std::string does;
    std::string usage = {};   ///< what stands behind the name, flags left out
    std::string footer = {};  ///< of its help: what there is to know, and examples
    Positionals args = Positionals::none;
    bool by_datagrams = false;  ///< a server of udp:// will do
  };

  virtual ~Command() = default;
  Command(Command&&) = delete;

  [[nodiscard]] bool parsed() const { return app_->parsed(); }
  /// After parsing; `behind_mark` is what stood behind --. Returns the exit status, or throws UsageError.
  [[nodiscard]] int run(const std::vector<std::string>& behind_mark);

 protected:
  using Duration = std::optional<std::chrono::milliseconds>;

  Command(CLI::App& parent, const About& about);
  [[nodiscard]] CLI::App& app() const { return *app_; }
  [[nodiscard]] const std::vector<std::string>& args() const { return args_; }

  /// `type` stands for the value in the help.
  template <class T>
  CLI::Option* add_value(const std::string& names, T& value, const std::string& type, const std::string& does) {
    return app_->add_option(names, value, does)->type_name(type);
  }
  /// A whole number of that range.
  template <class T>
  void add_count(const std::string& names, T& value, const std::string& does, std::uint64_t min = 1,
                 std::uint64_t max = kCountMax) {
    add_value(names, value, "N", does)->check(whole_number(names.substr(names.find("--") + 2), min, max));
  }
  /// A time, set by `target` or `read_durations`; --wait may be 0.
  void add_duration(const std::string& names, Duration& value, const std::string& does);
  /// An argument that has to be there.
  void add_argument(const std::string& name, std::string& value, const std::string& does) {
    add_value(name, value, "", does)->required();
  }
  /// --url, --timeout, and the options of a client: the last flags of its help.
  void add_target_flags(
      const std::string& timeout_help = "Timeout for connecting and the answer together, as 200ms or 1.5s");
  /// What these say. Throws UsageError.
  [[nodiscard]] Target target();
  /// Throws UsageError.
  void read_durations();

 private:
  struct DurationFlag {
    std::string names;
    Duration* value;
    std::string text = {};
  };

  virtual int run() = 0;

  CLI::App* app_;
  Positionals takes_;
  bool by_datagrams_;
  std::vector<std::string> args_;
  std::deque<DurationFlag> durations_;  // the parser holds on to the texts
  std::optional<ServerFlags> server_;
  std::optional<OptionFlags<ClientOptions>> client_;
  Duration timeout_;
};

/// One that sends a method and ARGs.
class MethodCommand : public Command {
 protected:
  MethodCommand(CLI::App& parent, About about);
  [[nodiscard]] const std::string& method() const { return method_; }
  /// The params as JSON text, empty for none. Throws UsageError.
  [[nodiscard]] std::string params_json() const;

 private:
  std::string method_;
};

}  // namespace wirecall::cli
