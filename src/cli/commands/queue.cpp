// `wirecall queue`: pushes calls that a broker makes later, provides a method by a program, and tells of queues.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <limits>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/json_call.hpp"
#include "cli/long_running.hpp"
#include "cli/terminal.hpp"
#include "cli/view/members.hpp"
#include "cli/view/table.hpp"
#include "runtime/descriptor.hpp"
#include "wirecall/call.hpp"
#include "wirecall/client.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/middleware.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

extern char** environ;

namespace wirecall::cli {
namespace {

using runtime::Descriptor;

// ---- programs ----

/// What a program has written, or why it has failed.
using Written = std::expected<std::string, std::string>;

/// Runs the program with `input` as its standard input; blocks until it has ended.
Written run_program(const std::vector<std::string>& words, std::string_view input) {
  const Descriptor in{::memfd_create("wirecall", MFD_CLOEXEC)};
  int ends[2];
  if (in.get() < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(std::string{std::strerror(errno)});
  const Descriptor out{ends[0]};
  Descriptor theirs{ends[1]};
  if (::write(in.get(), input.data(), input.size()) != static_cast<ssize_t>(input.size()))
    return std::unexpected(std::string{"no memory for its input"});
  ::lseek(in.get(), 0, SEEK_SET);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  theirs = Descriptor{};
  if (error != 0) return std::unexpected(fmt::format("cannot run {}: {}", words.front(), std::strerror(error)));
  std::string written;
  std::array<char, 65'536> part;
  for (ssize_t size; (size = ::read(out.get(), part.data(), part.size())) > 0;)
    written.append(part.data(), static_cast<std::size_t>(size));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return written;
  return std::unexpected(WIFEXITED(status)
                             ? fmt::format("{} has ended with status {}", words.front(), WEXITSTATUS(status))
                             : fmt::format("{} was ended by signal {}", words.front(), WTERMSIG(status)));
}

/// What the program has written as JSON: as it is where it is JSON, null for nothing, else a string.
std::string json_of(std::string written) {
  while (written.ends_with('\n')) written.pop_back();
  if (written.empty()) return "null";
  return Value::parse(written) ? written : to_json(written);
}

/// Answers calls by what a program writes.
class ProgramReplies {
 public:
  explicit ProgramReplies(std::vector<std::string> words) : words_(std::move(words)) {}
  ProgramReplies(ProgramReplies&&) = delete;

  /// The driver's. The program runs on a thread of the pool.
  void answer(Call& call) {
    ++running_;
    call.blocking_pool()->run([this, params = json_params(call) + '\n', encoding = call.message().encoding,
                               sink = call.detach()]() mutable -> detail::BlockingPool::Job {
      Written written = run_program(words_, params);
      return [this, written = std::move(written), encoding, sink = std::move(sink)]() mutable {
        if (written) {
          answer_in(encoding, sink, json_of(*std::move(written)));
        } else {
          print_error(written.error());
          sink.error(Error{written.error()});
        }
        ++ended_;
        if (--running_ == 0) running_.notify_all();
      };
    });
  }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }
  /// Blocks until all calls are answered. Any thread.
  void wait() const {
    for (int running; (running = running_.load()) != 0;) running_.wait(running);
  }

 private:
  const std::vector<std::string> words_;
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<int> running_{0};
};

// ---- the command ----

std::string one_line(const Value& object, std::string_view name) {
  const Value* const found = object.find(name);
  return found == nullptr ? std::string{} : found->dump();
}

std::string count_of(const Value& object, std::string_view name) { return count_text(number_of(object, name)); }

class QueueCommand final : public Command {
 public:
  explicit QueueCommand(CLI::App& parent);

 private:
  int run() override;
  int push();
  int work();
  int list();
  int peek();
  int job(const std::string& what);
  [[nodiscard]] const std::string& word(std::size_t at, std::string_view what) const;
  void require_words(std::size_t count) const;

  std::string msg_id_;
  Duration delay_;
  std::optional<std::uint32_t> max_deliver_;
  Duration job_timeout_;
  std::optional<std::uint32_t> concurrency_;
  std::string state_ = "waiting";
  std::uint32_t count_ = 20;
  bool json_ = false;
};

QueueCommand::QueueCommand(CLI::App& parent)
    : Command(
          parent,
          {.name = "queue",
           .does = "Push calls that a broker makes later, work on them, and list them",
           .usage = "[ls | push METHOD [ARG]... | work METHOD PROGRAM [ARG]... | peek METHOD | result ID | retry ID "
                    "| drop ID]",
           .footer = std::string{kArgumentsHelp} +
                     "A pushed call waits in the broker's durable store until a client that provides METHOD has "
                     "answered it\n(docs/durable.md). `push` prints the job's id once it is safe. `work` runs "
                     "PROGRAM for each call, with the\nparams as JSON on its standard input; what it prints is the "
                     "result, and any exit status but 0 an error.\n`retry` has a dead job tried anew; `drop` "
                     "forgets one.\n\n"
                     "Examples:\n"
                     "  wirecall queue push report.make year=2024\n"
                     "  wirecall queue work report.make -- ./make_report --fast\n"
                     "  wirecall queue ls\n"
                     "  wirecall queue peek report.make --state dead\n"
                     "  wirecall queue result 17\n\n",
           .args = Positionals::arguments}) {
  add_value("--msg-id", msg_id_, "TEXT", "With push: a job of the same method and id is pushed once");
  add_duration("--delay", delay_, "With push: the call is made no sooner than in that time");
  add_count("--max-deliver", max_deliver_, "With push: the call is made so often at most; 0 for no limit (default: 5)",
            0);
  add_duration("--job-timeout", job_timeout_, "With push: a provider has to answer in that time (default: 1h)");
  add_count("--concurrency", concurrency_, "With work: the most programs that run at once (default: 1)");
  add_value("--state", state_, "WORD", "With peek: waiting, running, done or dead");
  add_count("--count", count_, "With peek: the most jobs that are listed (default: 20)", 1, 1000);
  app().add_flag("--json", json_, "Print what the broker answers");
  add_target_flags();
}

const std::string& QueueCommand::word(std::size_t at, std::string_view what) const {
  if (args().size() <= at) throw UsageError{fmt::format("queue {} takes {}", args()[0], what)};
  return args()[at];
}

void QueueCommand::require_words(std::size_t count) const {
  if (args().size() > count) refuse_unexpected(app(), {args()[count]});
}

int QueueCommand::run() {
  const std::string what = args().empty() ? "ls" : args()[0];
  const std::vector<std::string> known{"ls", "push", "work", "peek", "result", "retry", "drop"};
  if (std::ranges::find(known, what) == known.end()) {
    throw UsageError{fmt::format("queue does not know {}{} It takes {}", what, did_you_mean(what, known, "."),
                                 fmt::join(known, ", "))};
  }
  if (what == "push") return push();
  if (what == "work") return work();
  if (what == "peek") return peek();
  if (what == "ls") return list();
  return job(what);
}

int QueueCommand::push() {
  const std::string& method = word(1, "a METHOD");
  const std::string call = require(params_of(std::span{args()}.subspan(2), read_file));
  const Target server = target();
  std::string params = "{\"method\":" + to_json(method);
  if (!call.empty()) params += ",\"params\":" + call;
  if (!msg_id_.empty()) params += ",\"msg_id\":" + to_json(msg_id_);
  if (delay_) params += fmt::format(",\"delay_ms\":{}", delay_->count());
  if (max_deliver_) params += fmt::format(",\"max_deliver\":{}", *max_deliver_);
  if (job_timeout_) params += fmt::format(",\"timeout_ms\":{}", job_timeout_->count());
  const auto tell = [this](const std::string& result) {
    if (json_) return print(result + '\n');
    const Value pushed = Value::parse(result).value_or(Value{});
    return print(one_line(pushed, "id") + '\n');
  };
  return with_result(server, "rpc.queue.push", tell, params + "}");
}

int QueueCommand::work() {
  const std::string& method = word(1, "a METHOD and a PROGRAM");
  static_cast<void>(word(2, "a PROGRAM behind METHOD"));
  ProgramReplies replies{{args().begin() + 2, args().end()}};
  Target server = target();
  // A job ends in its own time.
  server.client.limits.call_timeout_ms = std::numeric_limits<std::uint32_t>::max();
  LongRunning command{server};
  Client& client = command.client();
  client.registry().use([&](Call& call, const Next&) { replies.answer(call); });
  ProvideOptions options;
  options.concurrency = concurrency_.value_or(1);
  client.provide(method, [](Rest<Value>) { return Value{}; }, options);
  return command.stay("works on " + method, [&] {
    command.unregister(method);
    replies.wait();
  });
}

int QueueCommand::list() {
  require_words(1);
  return with_result(target(), "rpc.queue.ls", [this](const std::string& result) -> int {
    if (json_) return print(result + '\n');
    const Value listed = Value::parse(result).value_or(Value{});
    Table table{{"METHOD", ">WAITING", ">RUNNING", ">DONE", ">DEAD", ">BYTES"}};
    for (const Value& queue : elements_of(&listed)) {
      table.add({text_of(queue, "method"), count_of(queue, "waiting"), count_of(queue, "running"),
                 count_of(queue, "done"), count_of(queue, "dead"), bytes_text(number_of(queue, "bytes"))});
    }
    if (!table.empty()) return print(table.text());
    print_note("there are no jobs");
    return kSuccess;
  });
}

int QueueCommand::peek() {
  const std::string& method = word(1, "a METHOD");
  require_words(2);
  const std::string params =
      fmt::format("{{\"method\":{},\"state\":{},\"count\":{}}}", to_json(method), to_json(state_), count_);
  const auto tell = [this](const std::string& result) -> int {
    if (json_) return print(result + '\n');
    const Value listed = Value::parse(result).value_or(Value{});
    Table table{{">ID", ">DELIVERIES", "PARAMS", state_ == "done" ? "RESULT" : "ERROR"}};
    for (const Value& job : elements_of(&listed)) {
      table.add({one_line(job, "id"), count_of(job, "deliveries"), one_line(job, "params"),
                 one_line(job, state_ == "done" ? "result" : "error")});
    }
    if (!table.empty()) return print(table.text());
    print_note("there are no such jobs");
    return kSuccess;
  };
  return with_result(target(), "rpc.queue.peek", tell, params);
}

int QueueCommand::job(const std::string& what) {
  const std::string& id = word(1, "the ID of a job");
  require_words(2);
  if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError{fmt::format("queue {} takes the ID of a job, a number, not {}", what, id)};
  const auto tell = [](const std::string& result) { return print(result + '\n'); };
  return with_result(target(), "rpc.queue." + what, tell, "{\"id\":" + id + "}");
}

}  // namespace

std::unique_ptr<Command> queue_command(CLI::App& parent) { return std::make_unique<QueueCommand>(parent); }

}  // namespace wirecall::cli
