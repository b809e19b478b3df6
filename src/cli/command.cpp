// See command.hpp.
#include "cli/command.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <system_error>

#include "base/dotted_name.hpp"
#include "base/edit_distance.hpp"
#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/files.hpp"

namespace wirecall::cli {

const char* const kExitCodes =
    "Results go to stdout, all else to stderr. Exit status: 0, 1 a call was answered with an error,\n"
    "2 the command line is wrong, 3 no connection, 4 no answer in time, 130 ended by Ctrl-C (serve: by\n"
    "a second one), 143 by SIGTERM.";

const char* const kArgumentsHelp =
    "ARGs are all positional or all by name:\n"
    "  42  true  [1,2]  '{\"a\":1}'  text    what is JSON is that value, anything else a string\n"
    "  name=value                        the same, by name\n"
    "  @file  name=@file                 what a file holds: an array (.npy), an image, JSON, text, or bytes; @- is "
    "stdin\n"
    "  name:type=value                   int, float, str, bool, json, bytes (of the value), file (its bytes)\n"
    "Behind -- every word is an ARG, also one that begins with a dash.\n\n";

void require(const std::expected<void, std::string>& done) {
  if (!done) throw UsageError{done.error()};
}

void require_pattern(std::string_view pattern, std::string_view name) {
  if (is_pattern(pattern)) return;
  throw UsageError{fmt::format(
      "{} is no {}: words between dots, any of which may be * and the last one >, without white space", pattern, name)};
}

std::string did_you_mean(std::string_view arg, const std::vector<std::string>& names, std::string_view else_this) {
  const std::string_view nearest = wirecall::nearest_of(arg, names);
  return nearest.empty() ? std::string{else_this} : fmt::format("; did you mean {}?", nearest);
}

std::string unknown_command(std::string_view arg, const std::vector<std::string>& names) {
  return fmt::format("there is no command {}{} Commands are {}; wirecall --help tells more", arg,
                     did_you_mean(arg, names, "."), fmt::join(names, ", "));
}

void refuse_unexpected(const CLI::App& command, const std::vector<std::string>& args) {
  const auto option = std::ranges::find_if(args, [](const std::string& arg) { return arg.starts_with('-'); });
  const std::string help =
      fmt::format(" {}{} --help tells more", command.get_parent() != nullptr ? "wirecall " : "", command.get_name());
  if (option == args.end()) {
    throw UsageError{fmt::format("{} takes no argument {};{}", command.get_name(), args.front(), help)};
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
  }
  const bool is_address = (name == "--port" || name == "--host") && std::ranges::find(names, "--url") != names.end();
  const std::string instead =
      is_address ? "; say where the server is by --url HOST:PORT;" : did_you_mean(name, names, ";");
  throw UsageError{fmt::format("there is no option {}{}{}", name, instead, help)};
}

namespace {

class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} {}[OPTIONS]\n", name, usage_);
  }

 private:
  std::string usage_;
};

template <class T>
CLI::Validator within(const std::string& name, T min, T max, const std::string& range) {
  const auto check = [=](const std::string& arg) -> std::string {
    T value{};
    const char* const end = arg.data() + arg.size();
    const auto [read_to, error] = std::from_chars(arg.data(), end, value);
    const bool is_number = error == std::errc{} && read_to == end;
    if (is_number && value >= min && value <= max) return {};
    return out_of_range(name, is_number ? arg : to_json(printable(arg)), range);
  };
  return CLI::Validator{check, ""};
}

}  // namespace

void set_usage(CLI::App& command, const std::string& usage) {
  command.formatter(std::make_shared<UsageFormatter>(usage.empty() ? "" : usage + ' '));
}

CLI::Validator whole_number(const std::string& name, std::uint64_t min, std::uint64_t max) {
  return within(name, min, max, number_range(min, max, {}));
}

CLI::Validator number(const std::string& name, double min, double max) {
  return within(name, min, max, fmt::format("a number from {} to {:.0f}", min, max));
}

Command::Command(CLI::App& parent, const About& about)
    : app_(parent.add_subcommand(about.name, about.does)), takes_(about.args), by_datagrams_(about.by_datagrams) {
  app_->allow_extras();
  set_usage(*app_, about.usage);
  app_->footer(about.footer + kExitCodes);
}

void Command::add_duration(const std::string& names, Duration& value, const std::string& does) {
  DurationFlag& flag = durations_.emplace_back(DurationFlag{names, &value});
  std::ranges::replace(flag.names, ',', '/');
  add_value(names, flag.text, "DURATION", does);
}

void Command::add_target_flags(const std::string& timeout_help) {
  server_.emplace(*app_);
  client_.emplace(*app_);
  add_duration("--timeout", timeout_, timeout_help);
  // The command's own says the same of one call; in the help that one is enough.
  if (app_->get_option_no_throw("--wait") != nullptr) app_->get_option("--wait-ms")->group("");
  app_->get_option("--blocking-threads")->group("");  // no command has a handler that says it blocks
}

void Command::read_durations() {
  for (const DurationFlag& flag : durations_) {
    const bool none = flag.names == "--wait" && flag.text == "0";
    if (none) *flag.value = std::chrono::milliseconds{0};
    if (!none && !flag.text.empty()) *flag.value = require(duration_of(flag.text), flag.names);
  }
}

Target Command::target() {
  const SavedContext server = by_datagrams_ ? server_->server() : server_->server_with_connection(app_->get_name());
  Target target{.urls = server.urls};
  require(client_->apply(target.client));
  target.client.token = token_for(server, std::move(target.client.token));
  warn_of_no_verify(target.client);
  read_durations();
  target.timeout = timeout_;
  return target;
}

int Command::run(const std::vector<std::string>& behind_mark) {
  args_ = app_->remaining();
  for (const std::string& arg : args_) {
    const bool negative_number = arg.size() > 1 && arg[1] >= '0' && arg[1] <= '9';
    if (arg.size() > 1 && arg.front() == '-' && !negative_number) refuse_unexpected(*app_, {arg});
  }
  args_.insert(args_.end(), behind_mark.begin(), behind_mark.end());
  if (takes_ == Positionals::none && !args_.empty()) refuse_unexpected(*app_, args_);
  return run();
}

MethodCommand::MethodCommand(CLI::App& parent, About about)
    : Command(parent, {.name = std::move(about.name),
                       .does = std::move(about.does),
                       .usage = "METHOD [ARG | name=value | name:type=value | name=@file]...",
                       .footer = kArgumentsHelp + about.footer,
                       .args = Positionals::arguments,
                       .by_datagrams = true}) {
  add_argument("METHOD", method_, "The method's name");
}

std::string MethodCommand::params_json() const { return require(params_of_call(method_, args(), read_file)); }

std::string no_context(const std::string& name, const SavedContexts& saved) {
  return fmt::format("there is no context {}{} wirecall context lists those that there are", name,
                     did_you_mean(name, saved.names(), ";"));
}

ServerFlags::ServerFlags(CLI::App& command) {
  CLI::Option* const url =
      command
          .add_option("--url", urls_,
                      "The server's URI; of several, the first that can be connected to (default: that of --context, "
                      "$WIRECALL_URL, several with commas between them, $WIRECALL_CONTEXT, or `wirecall context use`; "
                      "else tcp://127.0.0.1:8545)")
          ->type_name("URI")
          ->allow_extra_args(false);
  command.add_option("--context", context_, "A server by its name (wirecall context add)")
      ->type_name("NAME")
      ->excludes(url);
}

SavedContext ServerFlags::server() const {
  const auto environment = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string{value == nullptr ? "" : value};
  };
  if (!urls_.empty()) return {.name = {}, .urls = urls_, .token = {}};
  std::string name = context_;
  if (name.empty()) {
    if (std::vector<std::string> urls = urls_of(environment("WIRECALL_URL")); !urls.empty())
      return {.name = {}, .urls = std::move(urls), .token = {}};
    name = environment("WIRECALL_CONTEXT");
  }
  const SavedContexts saved = require(load_contexts());
  if (name.empty()) name = saved.current.value_or("");
  if (name.empty()) return {.name = {}, .urls = {"tcp://127.0.0.1:8545"}, .token = {}};
  const SavedContext* const context = saved.find(name);
  if (context == nullptr) throw UsageError{no_context(name, saved)};
  return *context;
}

SavedContext ServerFlags::server_with_connection(const std::string& command) const {
  SavedContext found = server();
  for (const std::string& url : found.urls) {
    if (url.starts_with("udp://"))
      throw UsageError{fmt::format("{} needs a connection, and {} has none: name a server of {} by --url", command, url,
                                   kConnectionSchemes)};
  }
  return found;
}

std::string token_for(const SavedContext& server, std::string given) {
  if (!given.empty()) return given;
  const char* const token = std::getenv("WIRECALL_TOKEN");
  return token != nullptr && *token != '\0' ? token : server.token.value_or(std::string{});
}

}  // namespace wirecall::cli
