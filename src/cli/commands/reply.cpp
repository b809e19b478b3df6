// `wirecall reply`: provides a method that answers by a template.
#include <array>
#include <atomic>
#include <exception>
#include <fmt/core.h>
#include <stdexcept>

#include "cli/commands/commands.hpp"
#include "cli/json_call.hpp"
#include "cli/long_running.hpp"
#include "cli/terminal.hpp"
#include "cli/view/reply_template.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/client.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/context.hpp"
#include "wirecall/middleware.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;

template <std::size_t>
using AnyValue = Value;

template <std::size_t... I>
void provide_taking(Client& client, const std::string& method, const ProvideOptions& options,
                    std::index_sequence<I...>) {
  client.provide(method, [](AnyValue<I>...) { return Value{}; }, options);
}

/// Provides a method with the parameters of options.params. Middleware answers its calls: the function is not called.
void provide(Client& client, const std::string& method, const ProvideOptions& options) {
  constexpr std::size_t kSizes = ReplyTemplate::kParamsMax + 1;
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    ((N == options.params.size() ? provide_taking(client, method, options, std::make_index_sequence<N>{}) : void()),
     ...);
  }(std::make_index_sequence<kSizes>{});
}

/// Answers calls by a template, each after the same delay.
class Replies {
 public:
  Replies(ReplyTemplate text, milliseconds delay) : template_(std::move(text)), delay_(delay) {}
  Replies(Replies&&) = delete;

  /// The driver's.
  void answer(Call& call) {
    const auto filled = template_.fill(json_params(call));
    if (!filled) {
      call.error(filled.error());
    } else if (delay_.count() == 0) {
      answer_in(call.message().encoding, call, *filled);
    } else {
      answer_later(call, *filled);
    }
    ++begun_;
  }
  /// The number of calls so far.
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_; }
  /// Blocks until all calls are answered. Any thread.
  void wait() const {
    for (int waiting; (waiting = waiting_.load()) != 0;) waiting_.wait(waiting);
  }

 private:
  void answer_later(Call& call, std::string filled) {
    const Context context = call.context();
    waiting_.fetch_add(1);
    call.tasks().start(sleep_for(context, delay_), context.stop_token(),
                       [this, filled = std::move(filled), encoding = call.message().encoding,
                        sink = call.detach()](const TaskResult<void>& slept) mutable {
                         try {
                           if (!slept) std::rethrow_exception(slept.error());
                           answer_in(encoding, sink, filled);
                         } catch (...) {
                           sink.error_in_flight();
                         }
                         waiting_.fetch_sub(1);
                         waiting_.notify_all();
                       });
  }

  const ReplyTemplate template_;
  const milliseconds delay_;
  std::uint64_t begun_ = 0;
  std::atomic<int> waiting_{0};
};

class ReplyCommand final : public Command {
 public:
  explicit ReplyCommand(CLI::App& parent);

 private:
  int run() override;
  [[nodiscard]] ReplyTemplate reply_template() const;

  std::string method_;
  ProvideOptions options_;
  Duration delay_{0};
  std::uint64_t count_ = 0;
};

ReplyCommand::ReplyCommand(CLI::App& parent)
    : Command(
          parent,
          {.name = "reply",
           .does = "Provide a method that answers with a template",
           .usage = "METHOD TEMPLATE",
           .footer =
               "In TEMPLATE {name} is the param of that name, {0} the first param by position, {} the next one, and "
               "{{\n"
               "a brace. A TEMPLATE that is valid JSON is answered as that value, with the placeholders in its "
               "strings\n"
               "filled in; any other TEMPLATE is a string. A string that consists of {name} alone becomes the param\n"
               "itself, of any type.\n\n"
               "Examples:\n"
               "  wirecall reply greet 'Hello, {name}!'\n"
               "  wirecall reply sensor.read '{\"sensor\": \"{0}\", \"celsius\": 21.5}'\n"
               "  wirecall reply slow done --delay 2s --concurrency 1 --queue 10\n\n",
           .args = Positionals::arguments}) {
  add_argument("METHOD", method_, "The method's name");
  add_value("--policy", options_.policy, "POLICY",
            "How the broker chooses among several providers: one of least_inflight, round_robin, hash:PARAM, "
            "exclusive, random, "
            "first, last (default: least_inflight)");
  add_count("--concurrency", options_.concurrency,
            "The most calls that the broker sends here at once (default: no limit)");
  add_count("--queue", options_.queue, "The most further calls that wait at the broker (default: 1000)", 0);
  add_duration("--delay", delay_, "Delay before each answer, as 200ms or 1.5s");
  add_count("--count", count_, "Exit after N calls");
  add_value("--summary", options_.summary, "TEXT", "One sentence about the method, for wirecall ls");
  add_target_flags("Timeout for connecting and registering together, as 200ms or 1.5s");
}

ReplyTemplate ReplyCommand::reply_template() const {
  if (args().size() != 1) {
    throw UsageError{args().empty() ? "TEMPLATE is required; wirecall reply --help tells more"
                                    : "TEMPLATE is one word: put it between quotes"};
  }
  return require(ReplyTemplate::parse(args().front()), "TEMPLATE");
}

int ReplyCommand::run() {
  ReplyTemplate text = reply_template();
  for (const std::string& name : text.names()) options_.params.emplace_back(name);
  const Target server = target();
  Replies replies{std::move(text), *delay_};
  LongRunning command{server};
  Client& client = command.client();
  // Every call is answered before its params are looked at: those that the template does not use are not wrong.
  client.registry().use([&](Call& call, const Next&) {
    replies.answer(call);
    if (replies.begun() == count_) command.end(kSuccess);
  });
  provide(client, method_, options_);
  return command.stay("provides " + method_, [&] {
    command.unregister(method_);
    replies.wait();
  });
}

}  // namespace

std::unique_ptr<Command> reply_command(CLI::App& parent) { return std::make_unique<ReplyCommand>(parent); }

}  // namespace wirecall::cli
