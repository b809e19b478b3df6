// `wirecall call` and `wirecall notify`: one message, and what comes back on stdout.
#include <cerrno>
#include <fmt/core.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/one_line.hpp"
#include "cli/arguments.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "cli/view/blobs.hpp"
#include "wirecall/client.hpp"
#include "wirecall/packed_method.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

// By HTTP a provider's line breaks come as they are; who reads lines takes each for an answer.
static int print_line(std::string json) {
  make_one_line(json.data(), json.data() + json.size());
  return print(json + '\n');
}

// Each result on a line, as soon as it is there.
static int print_stream(RawClient& caller, std::string_view method, detail::OutgoingCall call,
                        const StopAtSignal& signal) {
  try {
    ResultStream<Value> items{detail::ItemReader{std::move(call), kStreamCredit}};
    for (const Value& item : items) {
      if (const int printed = print(item.dump() + '\n'); printed != kSuccess) return printed;
    }
    return kSuccess;
  } catch (const ConnectionError& error) {
    print_error(error);
    return kCannotConnect;
  } catch (const Error& error) {
    if (signal.gave_up(error)) return signal.status();
    print_error(explained(caller, method, error));
    return exit_of_answer(error);
  }
}

static int print_response(detail::OutgoingCall call, const StopAtSignal& signal) {
  call.keep_response();
  detail::Answer answer = call.wait();
  if (!answer.ok() && signal.gave_up(answer.error())) return signal.status();
  const std::string_view response = call.response();
  if (response.empty()) {
    print_error(answer.error());
    return exit_of(answer.error());
  }
  const int printed = print_line(std::string{response});
  return printed != kSuccess || answer.ok() ? printed : exit_of_answer(answer.error());
}

// Result or error as one object on stdout, for programs that read it.
static int print_json(const Error& error) {
  std::string text = fmt::format(R"({{"error":{{"code":{},"message":{})", error.code(), to_json(error.message()));
  if (!error.data().empty()) text.append(R"(,"data":)").append(error.data());
  return print_line(text + "}}");
}

/// What a result says, as JSON text; `packed` is null where it is not packed.
std::expected<std::string, Error> unpacked(const PackedMethod* packed, std::string result) {
  if (packed == nullptr) return result;
  auto answered = Value::parse(result);
  if (!answered) return std::unexpected(answered.error());
  const auto value = packed->unpack(*std::move(answered));
  if (!value) return std::unexpected(value.error());
  try {
    return value->dump();
  } catch (const LocalError& error) {  // such as NaN
    return std::unexpected(error);
  }
}

/// Params as the binary encodings have them: bytes and extensions are values there.
Value params_of_json(std::string_view json) {
  if (json.empty()) return {};
  Buffer text;
  const std::unique_ptr<Writer> writer = msgpack_codec().writer();
  writer->reset(text);
  writer->json(json);
  if (writer->failed()) throw Error{ErrorCode::invalid_params, writer->failure()};
  auto params = from_msgpack<Value>(std::as_bytes(std::span{text.view()}));
  if (!params) throw params.error();
  return *std::move(params);
}

int print_json(RawClient& caller, std::string_view method, detail::OutgoingCall call, const PackedMethod* packed,
               const StopAtSignal& signal) {
  call.keep_response();
  detail::Answer answer = call.wait();
  if (answer.ok()) {
    const auto result = unpacked(packed, std::string{answer.result()});
    if (result) return print_line(R"({"result":)" + *result + "}");
    const int printed = print_json(result.error());
    return printed != kSuccess ? printed : kRpcError;
  }
  const Error& error = answer.error();
  if (const int printed = print_json(explained(caller, method, error)); printed != kSuccess) return printed;
  if (signal.gave_up(error)) return signal.status();
  return call.response().empty() ? exit_of(error) : exit_of_answer(error);
}

// An array, an image or bytes go to a file or pipe as such a file has them; a terminal is told what they are.
int print_result(RawClient& caller, std::string_view method, detail::OutgoingCall call, const PackedMethod* packed,
                 const StopAtSignal& signal) {
  const auto answered = result_of(caller, method, std::move(call), signal);
  if (!answered) return answered.error();
  const auto result = unpacked(packed, *answered);
  if (!result) {
    print_error(result.error());
    return kRpcError;
  }
  const std::optional<Blob> blob = blob_of(*result);
  if (!blob) return print_line(*result);
  if (!prints_to_terminal()) return print(blob->content);
  return print(blob->description + ", " + std::to_string(blob->content.size()) +
               " bytes: redirect it to a file (> out" + std::string{blob->suffix} + ")\n");
}

/// The lines of standard input, each a JSON value; empty ones are passed over.
class LineSource final : public detail::InputSource {
 public:
  Next next(Writer& writer, detail::InputDriver&) override {
    while (!find_line()) {
      if (ended_) return Next::end;
      read_more();
    }
    const auto value = from_json<Value>(std::string_view{text_}.substr(begin_, end_ - begin_));
    if (!value) throw Error{ErrorCode::invalid_params, fmt::format("line {} of standard input is not JSON", number_)};
    encode(writer, *value);
    begin_ = searched_;
    end_ = std::string::npos;
    return Next::item;
  }
  [[nodiscard]] bool may_block() noexcept override { return !find_line() && !ended_; }

 private:
  // Whether a whole line that is not empty has been read: text_[begin_, end_). Passes over empty ones.
  [[nodiscard]] bool find_line() noexcept {
    while (end_ == std::string::npos) {
      const std::size_t end = text_.find('\n', searched_);
      if (end == std::string::npos) {
        searched_ = text_.size();
        return false;
      }
      searched_ = end + 1;
      ++number_;
      if (text_.find_first_not_of(" \t\r", begin_) == end) {
        begin_ = searched_;
      } else {
        end_ = end;
      }
    }
    return true;
  }

  void read_more() {
    text_.erase(0, begin_);
    searched_ -= std::exchange(begin_, 0);
    char block[64 * 1024];
    ssize_t bytes = 0;
    do {
      bytes = ::read(STDIN_FILENO, block, sizeof block);
    } while (bytes < 0 && errno == EINTR);
    if (bytes > 0) {
      text_.append(block, static_cast<std::size_t>(bytes));
    } else {
      ended_ = true;
      if (!text_.empty()) text_ += '\n';
    }
  }

  std::string text_;  // what has been read, from the first line on that has not been sent
  std::size_t begin_ = 0;
  std::size_t end_ = std::string::npos;
  std::size_t searched_ = 0;  // no further line break is before
  std::size_t number_ = 0;    // of the line that begins at begin_
  bool ended_ = false;
};

/// Who was started together with this, to serve or to provide the method, may take so long to do it.
constexpr std::chrono::milliseconds kWait{250};
/// Between two looks for a method that is waited for.
constexpr std::chrono::milliseconds kPause{20};

constexpr const char* kToHelp = "At a broker: only to the provider of that name";

class CallCommand final : public MethodCommand {
 public:
  explicit CallCommand(CLI::App& parent)
      : MethodCommand(parent,
                      {.name = "call",
                       .does = "Call a method and print its result",
                       .footer = "Examples:\n"
                                 "  wirecall call subtract 42 23\n"
                                 "  wirecall call subtract minuend=42 subtrahend=23\n"
                                 "  wirecall call echo value:str=42 --url tcp://127.0.0.1:8545 --timeout 200ms\n"
                                 "  wirecall call subtract 42 23 --url http://127.0.0.1:8545/rpc\n"
                                 "  wirecall call subtract 42 23 --encoding packed\n"
                                 "  wirecall call --stream count 5\n"
                                 "  seq 3 | wirecall call sum_all --stdin\n"
                                 "  wirecall call resize image=@cat.png width=64 > small.png\n\n"}) {
    CLI::Option* const raw = app().add_flag("--raw", raw_, "Print the whole response");
    CLI::Option* const stream =
        app().add_flag("--stream", stream_, "Print each result of a stream as it comes")->excludes(raw);
    app()
        .add_flag("--json", json_,
                  "Print {\"result\":...} or {\"error\":...} on stdout; the exit status stays the same")
        ->excludes(raw)
        ->excludes(stream);
    app().add_flag("--stdin", stdin_,
                   "Send a stream towards the handler: each line of standard input is one item, as JSON");
    add_value("--to", to_, "NAME", kToHelp);
    add_duration(
        "--wait", wait_,
        "How long to retry while no server is there or nobody provides the method; 0 for never (default: 250ms)");
    app()
        .add_flag("--all", all_,
                  "At a broker: call every provider (rpc.call_all), and print an array of their outcomes")
        ->excludes(stream)
        ->excludes("--stdin")
        ->excludes("--to");
    app().add_flag("--idempotent", idempotent_,
                   "The method may run several times for this call: by UDP it is sent again while nothing answers");
    add_target_flags("Timeout for connecting and the answer together, as 200ms or 1.5s; of a stream, for each item");
    add_packed_encoding();
  }

 private:
  // One more word for --encoding: values that are packed go in messages of Protocol Buffers.
  void add_packed_encoding() {
    CLI::Option* const encoding = app().get_option("--encoding");
    std::string help = encoding->get_description();
    help.insert(std::min(help.rfind(" (default"), help.size()), ", packed");
    encoding->description(help)->transform(CLI::Validator{[this](std::string& word) {
                                                            packed_ = word == "packed";
                                                            if (packed_) word = "protobuf";
                                                            return std::string{};
                                                          },
                                                          ""});
  }

  int run() override {
    const std::string params = params_json();
    Target server = target();
    if (packed_ && (stream_ || stdin_ || all_))
      throw UsageError{"--encoding packed is for one call with one result: leave out --stream, --stdin and --all"};
    for (const std::string& url : server.urls) {
      if ((stream_ || all_) && url.starts_with("udp://"))
        throw UsageError{fmt::format("{} needs a connection, and {} has none: name a server of {} by --url",
                                     stream_ ? "--stream" : "--all", url, kConnectionSchemes)};
    }
    if (json_) server.unreachable = [](const Error& error) { static_cast<void>(print_json(error)); };
    const std::chrono::milliseconds own{server.client.wait_ms};
    server.wait = wait_.value_or(own.count() != 0 ? own : kWait);
    return with_server(server, [&](RawClient& caller, TimeLeft left) -> int {
      const StopAtSignal signal;
      std::string sent = all_ ? all_params(params) : params;
      std::optional<PackedMethod> packed;
      if (packed_) {
        if (const int status = pack(caller, left, server.wait, signal, packed, sent); status != kSuccess) return status;
      }
      const std::string called = all_ ? "rpc.call_all" : method();
      detail::OutgoingCall call = caller.call(called, sent, signal.token());
      call.set_to(to_);
      if (packed) call.set_layout(packed->params_layout());
      // A method that was waited for in vain, to be told how it is packed, is not called otherwise.
      call.set_wait(packed_ && !packed ? std::chrono::milliseconds{0} : server.wait);
      call.set_idempotent(idempotent_);
      if (stdin_) call.set_input(std::make_unique<LineSource>());
      if (stream_) return print_stream(caller, called, std::move(call), signal);
      if (left) call.set_timeout(*left);
      const PackedMethod* const packing = packed ? &*packed : nullptr;
      if (json_) return print_json(caller, called, std::move(call), packing, signal);
      return raw_ ? print_response(std::move(call), signal)
                  : print_result(caller, called, std::move(call), packing, signal);
    });
  }

  // Asks the server for the method's layouts, and packs `params`, JSON text that is empty for none. A method that the
  // server does not have is waited for as by the call; after that `params` are left as they are, and the server will
  // say so. Takes from `left` what that has taken. Returns an exit status; what has failed has been told.
  int pack(RawClient& caller, TimeLeft& left, std::chrono::milliseconds wait, const StopAtSignal& signal,
           std::optional<PackedMethod>& packed, std::string& params) const {
    using std::chrono::steady_clock;
    const auto begun = steady_clock::now();
    const TimeLeft given = left;
    for (;;) {
      detail::OutgoingCall call = caller.call("rpc.discover", {}, signal.token());
      if (left) call.set_timeout(*left);
      const auto discovered = result_of(caller, "rpc.discover", std::move(call), signal);
      if (!discovered) return discovered.error();
      const auto passed = std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - begun);
      if (given) left = std::max(*given - passed, std::chrono::milliseconds{1});
      const auto document = Value::parse(*discovered);
      if (!document) return refuse(document.error());
      if (PackedMethod::has_method(*document, method())) return pack(*document, packed, params);
      if (passed >= wait || signal.came()) return kSuccess;
      std::this_thread::sleep_for(kPause);
    }
  }
  int pack(const Value& document, std::optional<PackedMethod>& packed, std::string& params) const {
    try {
      packed = PackedMethod::find(document, method());
      if (!packed)
        return refuse({ErrorCode::invalid_params, method() + " takes no packed params: use another --encoding"});
      const auto sent = packed->pack(params_of_json(params));
      if (!sent) return refuse(sent.error());
      params = sent->dump();
      return kSuccess;
    } catch (const Error& error) {
      return refuse(error);
    } catch (const std::invalid_argument& error) {
      return refuse({ErrorCode::internal_error, error.what()});
    }
  }
  // As the server's refusal is told.
  [[nodiscard]] int refuse(const Error& error) const {
    if (!json_) {
      print_error(error);
    } else if (const int printed = print_json(error); printed != kSuccess) {
      return printed;
    }
    return kRpcError;
  }

  // Those of rpc.call_all, which asks every provider with `params`.
  [[nodiscard]] std::string all_params(const std::string& params) const {
    const std::string given = params.empty() ? "" : R"(,"params":)" + params;
    return R"({"method":)" + to_json(method()) + given + "}";
  }

  std::string to_;
  Duration wait_;
  bool all_ = false;
  bool raw_ = false;
  bool json_ = false;
  bool stream_ = false;
  bool stdin_ = false;
  bool idempotent_ = false;
  bool packed_ = false;
};

class NotifyCommand final : public MethodCommand {
 public:
  explicit NotifyCommand(CLI::App& parent)
      : MethodCommand(parent, {.name = "notify",
                               .does = "Send a notification, which has no response",
                               .footer = "Example:\n"
                                         "  wirecall notify log 'the door is open'\n\n"}) {
    add_value("--to", to_, "NAME", kToHelp);
    add_target_flags("Timeout for connecting and sending together, as 200ms or 1.5s");
  }

 private:
  int run() override {
    const std::string params = params_json();
    return with_server(target(), [&](RawClient& caller, TimeLeft left) -> int {
      detail::OutgoingCall call = caller.call(method(), params, {});
      call.set_to(to_);
      if (left) call.set_timeout(*left);
      detail::Answer sent = call.notify();
      if (sent.ok()) return kSuccess;
      print_error(sent.error());
      return exit_of(sent.error());
    });
  }

  std::string to_;
};

std::unique_ptr<Command> call_command(CLI::App& parent) { return std::make_unique<CallCommand>(parent); }
std::unique_ptr<Command> notify_command(CLI::App& parent) { return std::make_unique<NotifyCommand>(parent); }

}  // namespace wirecall::cli
