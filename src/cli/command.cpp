// See command.hpp.
#include "cli/command.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <memory>

#include "base/edit_distance.hpp"
#include "cli/arguments.hpp"
#include "cli/files.hpp"
#include "cli/flags.hpp"
#include "wirecall/options.hpp"

namespace wirecall::cli {

const char* const kExitCodes =
    "Results go to stdout, all else to stderr. Exit status: 0, 1 a call was answered with an error,\n"
    "2 the command line is wrong, 3 no connection, 4 no answer in time, 130 ended by Ctrl-C (serve: by\n"
    "a second one), 143 by SIGTERM.";

const char* const kArgumentsHelp =
    "ARGs are all positional or all by name:\n"
    "  42  true  [1,2]  '{\"a\":1}'  text    what is JSON is that value, anything else a string\n"
    "  name=value                        the same, by name\n"
    "  name=@file                        the text of a file\n"
    "  name:type=value                   int, float, str, bool, json, bytes (of the value), file (its bytes)\n"
    "Behind -- every word is an ARG, also one that begins with a dash.\n\n";

void require(const std::expected<void, std::string>& done) {
  if (!done) throw UsageError{done.error()};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names, std::string_view else_this) {
  const std::string_view nearest = wirecall::nearest_of(word, names);
  return nearest.empty() ? std::string{else_this} : fmt::format("; did you mean {}?", nearest);
}

void refuse_unexpected(const CLI::App& command, const std::vector<std::string>& words) {
  const auto option = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  const std::string help = fmt::format(" wirecall {} --help tells more", command.get_name());
  if (option == words.end()) {
    throw UsageError{fmt::format("{} takes no argument {};{}", command.get_name(), words.front(), help)};
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
  }
  throw UsageError{fmt::format("there is no option {}{}{}", name, did_you_mean(name, names, ";"), help)};
}

namespace {

/// CLI11 does not know of the ARGs, because its lists would take [1,2] apart.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} {}[OPTIONS]\n", name, usage_);
  }

 private:
  std::string usage_;
};

}  // namespace

/// --url, --timeout, and the options of a client.
class Command::TargetFlags {
 public:
  TargetFlags(CLI::App& command, const std::string& timeout_help);
  TargetFlags(TargetFlags&&) = delete;

  [[nodiscard]] Target target() const;

 private:
  UrlFlag url_;
  std::string timeout_;
  OptionFlags<ClientOptions> client_;
};

Command::Command(CLI::App& parent, const About& about)
    : app_(parent.add_subcommand(about.name, about.does)), takes_(about.words) {
  app_->allow_extras();
  app_->formatter(std::make_shared<UsageFormatter>(about.usage.empty() ? "" : about.usage + ' '));
  app_->footer(about.footer + kExitCodes);
}

Command::~Command() = default;

void Command::add_target_flags(const std::string& timeout_help) {
  target_flags_ = std::make_unique<TargetFlags>(*app_, timeout_help);
}

Target Command::target() const { return target_flags_->target(); }

int Command::run(const std::vector<std::string>& behind_mark) {
  words_ = app_->remaining();
  for (const std::string& word : words_) {
    const bool negative_number = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
    if (word.size() > 1 && word.front() == '-' && !negative_number) refuse_unexpected(*app_, {word});
  }
  words_.insert(words_.end(), behind_mark.begin(), behind_mark.end());
  if (takes_ == Words::none && !words_.empty()) refuse_unexpected(*app_, words_);
  return run();
}

MethodCommand::MethodCommand(CLI::App& parent, About about)
    : Command(parent, {.name = std::move(about.name),
                       .does = std::move(about.does),
                       .usage = "METHOD [ARG | name=value | name:type=value | name=@file]...",
                       .footer = kArgumentsHelp + about.footer,
                       .words = Words::arguments}) {
  app().add_option("METHOD", method_, "The method's name")->required()->type_name("");
}

std::string MethodCommand::params_json() const { return require(params_of_call(method_, words(), read_file)); }

UrlFlag::UrlFlag(CLI::App& command) {
  command
      .add_option("--url", words_,
                  "The server; when repeated, the first that can be connected to. Else $WIRECALL_URL (several with "
                  "commas between them), else tcp://127.0.0.1:8545")
      ->type_name("URI")
      ->allow_extra_args(false);
}

std::vector<std::string> UrlFlag::urls() const {
  std::vector<std::string> urls = words_;
  if (const char* url = std::getenv("WIRECALL_URL"); urls.empty() && url != nullptr) urls = urls_of(url);
  if (urls.empty()) urls.emplace_back("tcp://127.0.0.1:8545");
  return urls;
}

Command::TargetFlags::TargetFlags(CLI::App& command, const std::string& timeout_help)
    : url_(command), client_(command) {
  command.add_option("--timeout", timeout_, timeout_help)->type_name("DURATION");
}

Target Command::TargetFlags::target() const {
  Target target{.urls = url_.urls()};
  require(client_.apply(target.client));
  if (const char* token = std::getenv("WIRECALL_TOKEN"); target.client.token.empty() && token != nullptr)
    target.client.token = token;
  if (!timeout_.empty()) target.timeout = require(duration_of(timeout_), "--timeout");
  return target;
}

}  // namespace wirecall::cli
